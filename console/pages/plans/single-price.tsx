/** Inputs of a price without tiers: an amount, and the size of a package. */
import type { ReactNode } from 'react';
import { Choice } from '../../components/choice.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { useTexts } from '../../texts/texts.ts';
import { isTiered, type PriceDraft, type PriceModelChoice } from './price-draft.ts';
import styles from './price-editor.module.css';
import { type PriceScale, scalePrice } from './price-figures.ts';
import { PRICE_TEXTS } from './price-texts.ts';

type SinglePriceProps = {
  draft: PriceDraft;
  onDraft: (draft: PriceDraft) => void;
  scale: PriceScale;
  errorAt: (field: string) => ReactNode;
  isReadOnly: boolean;
};

export function SinglePrice({ draft, onDraft, scale, errorAt, isReadOnly }: SinglePriceProps): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const power = draft.model === 'per_unit' ? scale : 0;
  const label = { flat: texts.amount, package: texts.packagePrice }[draft.model as string] ?? texts.unitPrice;
  return (
    <div className={styles.single}>
      <NumberInput
        key={power}
        label={power === 0 ? label : `${texts.price} ${texts.perScale(power)}`}
        rightSection={<span className="label">{draft.currency.toUpperCase()}</span>}
        rightSectionWidth={44}
        readOnly={isReadOnly}
        value={scalePrice(draft.amount, power)}
        onValue={(amount) => onDraft({ ...draft, amount: scalePrice(amount, -power) })}
        error={errorAt('amount')}
      />
      {draft.model === 'package' && (
        <>
          <NumberInput
            label={texts.packageSize}
            readOnly={isReadOnly}
            value={draft.divide_by}
            onValue={(divide_by) => onDraft({ ...draft, divide_by })}
            error={errorAt('transform_quantity.divide_by') ?? errorAt('transform_quantity')}
          />
          <div>
            <div className={styles.fieldLabel}>{texts.partial}</div>
            <Choice
              label={texts.partial}
              value={draft.round}
              options={[
                { value: 'up', label: texts.roundUp },
                { value: 'down', label: texts.roundDown },
              ]}
              onValue={(round) => onDraft({ ...draft, round })}
            />
          </div>
        </>
      )}
    </div>
  );
}

/** Whether prices of the model may be shown per thousand or million units. A flat amount and a package may not. */
export function isScaled(model: PriceModelChoice): boolean {
  return isTiered(model) || model === 'per_unit';
}
