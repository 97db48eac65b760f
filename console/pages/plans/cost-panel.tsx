/** At the side of the editor: the cost of a quantity, its sum written out, the average, the next units, and the curve. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { CostCurve } from '../../charts/cost-curve.tsx';
import { ApiError } from '../../client/client.ts';
import { showApiText } from '../../components/api-text.ts';
import { NumberInput } from '../../components/number-input.tsx';
import { Sheet } from '../../components/page.tsx';
import { Loading } from '../../components/states.tsx';
import { type SumRow, WrittenSum } from '../../components/thread.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { BigMoney, WhyButton } from '../../figures/money.tsx';
import { type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import type { PriceDraft } from './price-draft.ts';
import styles from './price-editor.module.css';
import {
  addScale,
  buildCurve,
  computeAverage,
  type PricedQuantity,
  type PriceScale,
  scalePrice,
  subtractAmounts,
} from './price-figures.ts';
import { PRICE_TEXTS } from './price-texts.ts';

type CostPanelProps = {
  draft: PriceDraft;
  quantity: string;
  onQuantity: (quantity: string) => void;
  scale: PriceScale;
  costs: ReadonlyMap<string, PricedQuantity>;
  quantities: readonly string[];
  error: Error | null;
  isLoading: boolean;
};

export function CostPanel(props: CostPanelProps): ReactNode {
  const { draft, quantity, onQuantity, scale, costs, quantities, error, isLoading } = props;
  const texts = useTexts(PRICE_TEXTS);
  const language = useLanguage();
  const cost = quantity === '' ? undefined : costs.get(quantity);
  const next = cost && costs.get(addScale(quantity, scale));
  const show = (amount: string) => formatMoney(language, amount, draft.currency);
  const points = buildCurve(draft, quantities, costs);
  const average = cost && computeAverage(cost, scale);
  // An error of a field stands at the field.
  const isElsewhere = error instanceof ApiError && error.field !== null && !error.field.startsWith('quantities');
  return (
    <Sheet padded>
      <div className={styles.quantity}>
        <NumberInput label={texts.cost} size="lg" value={quantity} onValue={onQuantity} />
      </div>
      {error && !isElsewhere ? (
        <p role="alert" className={styles.fault}>
          {showApiText(error.message)}
        </p>
      ) : cost ? (
        <>
          <CostFigure cost={cost} draft={draft} />
          <p className="label">
            {[
              average && draft.model !== 'flat' ? texts.average(show(average), texts.perScale(scale)) : null,
              next && draft.model !== 'flat'
                ? texts.next(show(subtractAmounts(next.amount, cost.amount)), texts.nextScale(scale))
                : null,
            ]
              .filter((text) => text !== null)
              .join(' · ')}
          </p>
          {points.length > 1 && (
            <CostCurve
              label={texts.curve(formatQuantity(language, points.at(-1)!.quantity), show(points.at(-1)!.amount))}
              points={points}
              chosen={{ quantity, amount: cost.amount }}
              currency={draft.currency}
            />
          )}
        </>
      ) : isLoading ? (
        <Loading rows={4} />
      ) : (
        <p className={styles.costHint}>{isElsewhere ? texts.costFault : texts.costHint}</p>
      )}
    </Sheet>
  );
}

/** The one figure of the page. Its thread is the sum, tier by tier. */
function CostFigure({ cost, draft }: { cost: PricedQuantity; draft: PriceDraft }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const language = useLanguage();
  const { why } = useSearch({ strict: false }) as { why?: string };
  const navigate = useNavigate();
  const isOpen = why === 'cost';
  const amount = formatMoney(language, cost.amount_rounded, draft.currency);
  const toggle = () =>
    void navigate({
      to: '.',
      search: (old: object) => ({ ...old, why: isOpen ? undefined : 'cost' }),
      resetScroll: false,
    } as never);
  return (
    <>
      <div className={styles.figure}>
        <WhyButton why={texts.whyCost(amount)} onOpen={toggle}>
          <BigMoney amount={cost.amount_rounded} currency={draft.currency} />
        </WhyButton>
      </div>
      {isOpen && (
        <WrittenSum
          rows={listSumRows(cost, draft, language, texts)}
          total={{
            key: 'total',
            what: cost.amount === cost.amount_rounded ? texts.sum : `${texts.sum}, ${texts.rounded}`,
            amount,
          }}
        />
      )}
    </>
  );
}

type PriceTexts = ReturnType<typeof useTexts<(typeof PRICE_TEXTS)['en']>>;

function listSumRows(cost: PricedQuantity, draft: PriceDraft, language: Language, texts: PriceTexts): SumRow[] {
  const count = (quantity: string) => formatQuantity(language, quantity);
  const money = (amount: string) => formatMoney(language, amount, null);
  return cost.lines.map((line, at) => {
    const name =
      draft.model === 'graduated'
        ? at === 0
          ? texts.firstUnits(count(line.quantity))
          : texts.nextUnits(count(line.quantity))
        : draft.model === 'package'
          ? texts.packages(count(line.quantity))
          : texts.units(count(line.quantity));
    const flat = line.flat_amount === null ? '' : ` ${texts.plusFlat(money(line.flat_amount))}`;
    return {
      key: String(at),
      what: name,
      times: `×\u00a0${showRate(line.unit_amount, language)}${flat}`,
      amount: money(line.amount),
    };
  });
}

/** A small rate stands per million, as in the sums of invoices: × 3.00 / 1 M. */
function showRate(rate: string, language: Language): string {
  const isSmall = /^0\.00/.test(rate) && /[1-9]/.test(rate);
  return isSmall
    ? `${formatMoney(language, scalePrice(rate, 6), null)}\u00a0/\u00a01\u00a0M`
    : formatMoney(language, rate, null);
}
