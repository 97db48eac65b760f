/** Inputs for terms of prices that differ from the plan, on a subscription or in one of its phases. */
import type { ReactNode } from 'react';
import { findExactError, findUnshownError } from '../../components/field-errors.ts';
import { NumberInput } from '../../components/number-input.tsx';
import { Sheet } from '../../components/page.tsx';
import { TextButton } from '../../components/text-button.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import { toDraft } from '../plans/price-draft.ts';
import { PriceRate } from '../plans/price-rate.tsx';
import { NEW_TEXTS } from './new-texts.ts';
import { OwnCharge } from './own-charge.tsx';
import styles from './prices.module.css';
import { NO_OVERRIDE, type PriceOverrideDraft, type PriceOverrideDrafts } from './subscription-draft.ts';
import { listOverridden } from './subscription-request.ts';

type PriceOverridesProps = {
  prices: readonly PlanPrice[];
  overrides: PriceOverrideDrafts;
  onOverrides: (overrides: PriceOverrideDrafts) => void;
  /** Error of the creation, or else of the preview. */
  error: Error | null;
  /** Path of the phase in the request, such as `phases[0].`; empty for the subscription itself. */
  path?: string;
  /** Name of the phase, which distinguishes its inputs from those of the others. */
  where?: string;
};

export function PriceOverrides(props: PriceOverridesProps): ReactNode {
  const { prices, overrides, onOverrides, error, path = '', where } = props;
  const texts = useTexts(NEW_TEXTS);
  const overridden = listOverridden(overrides);
  return (
    <Sheet>
      <div className={`${styles.override} ${styles.overrideHead}`} aria-hidden="true">
        <span>{texts.price}</span>
        <span>{texts.quantity}</span>
        <span>{texts.amount}</span>
      </div>
      {prices.map((price) => (
        <PriceOverrideRow
          key={price.id}
          price={price}
          terms={overrides[price.id] ?? NO_OVERRIDE}
          where={where}
          error={error}
          path={`${path}override_line_items[${overridden.indexOf(price.id)}]`}
          onTerms={(terms) => onOverrides({ ...overrides, [price.id]: terms })}
        />
      ))}
    </Sheet>
  );
}

/** Fields of an override whose inputs show their errors. */
const SHOWN = /^\.(quantity|amount|tiers|tiers\[\d+\]\.\w+|transform_quantity(\.divide_by)?)$/;

type PriceOverrideRowProps = {
  price: PlanPrice;
  terms: PriceOverrideDraft;
  where: string | undefined;
  error: Error | null;
  path: string;
  onTerms: (terms: PriceOverrideDraft) => void;
};

function PriceOverrideRow({ price, terms, where, error, path, onTerms }: PriceOverrideRowProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const language = useLanguage();
  const { display_name, type, billing_model, min_quantity, amount, price_unit } = price;
  const name = display_name ?? price.id;
  const label = where === undefined ? name : `${name}, ${where}`;
  const errorAt = (field: string) => findExactError(error, `${path}.${field}`);
  const rest = findUnshownError(error, path, SHOWN);
  const hasAmount = billing_model !== 'TIERED' && price_unit === null && terms.charge === null;
  const toggleCharge = () => onTerms({ ...terms, amount: '', charge: terms.charge === null ? toDraft(price) : null });
  return (
    <div className={styles.price}>
      <div className={styles.override}>
        <span>
          <bdi>{name}</bdi>
          <br />
          <span className="label">
            <PriceRate price={price} />
          </span>
        </span>
        {type === 'FIXED' ? (
          <NumberInput
            aria-label={texts.quantityOf(label)}
            placeholder={formatQuantity(language, min_quantity ?? '1')}
            value={terms.quantity}
            error={errorAt('quantity')}
            onValue={(quantity) => onTerms({ ...terms, quantity })}
          />
        ) : (
          <span className="muted">{texts.byUsage}</span>
        )}
        <div className={styles.amount}>
          {hasAmount && (
            <NumberInput
              aria-label={texts.amountOf(label)}
              placeholder={amount ? formatQuantity(language, amount) : ''}
              value={terms.amount}
              error={errorAt('amount')}
              onValue={(next) => onTerms({ ...terms, amount: next })}
            />
          )}
          {price_unit === null && (
            <TextButton className={styles.ownLink} aria-expanded={terms.charge !== null} onClick={toggleCharge}>
              {terms.charge !== null ? texts.asInPlan : billing_model === 'TIERED' ? texts.ownTiers : texts.ownModel}{' '}
              <span className="visually-hidden">{label}</span>
            </TextButton>
          )}
        </div>
      </div>
      {terms.charge !== null && (
        <OwnCharge
          name={label}
          charge={terms.charge}
          errorAt={errorAt}
          onCharge={(charge) => onTerms({ ...terms, charge })}
        />
      )}
      {rest !== undefined && (
        <p role="alert" className={styles.error}>
          {rest}
        </p>
      )}
    </div>
  );
}
