/** A charge that replaces the charge of a price of the plan: its model, and its tiers or its amount. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Choice } from '../../components/choice.tsx';
import { useTexts } from '../../texts/texts.ts';
import { buildCostQuery } from '../plans/cost-query.ts';
import { hasCharge, isTiered, MODELS, type PriceDraft, type PriceModelChoice } from '../plans/price-draft.ts';
import { chooseScale, indexCosts, listTierTotals, type PriceScale } from '../plans/price-figures.ts';
import { PRICE_TEXTS } from '../plans/price-texts.ts';
import { ScaleChoice } from '../plans/scale-choice.tsx';
import { isScaled, SinglePrice } from '../plans/single-price.tsx';
import { TierTable } from '../plans/tier-table.tsx';
import styles from './prices.module.css';

const TYPING_MS = 250;

type OwnChargeProps = {
  /** Name of the price, which distinguishes its inputs from those of other prices. */
  name: string;
  charge: PriceDraft;
  onCharge: (charge: PriceDraft) => void;
  errorAt: (field: string) => ReactNode;
};

export function OwnCharge({ name, charge, onCharge, errorAt }: OwnChargeProps): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const [scale, setScale] = useState<PriceScale>(() => chooseScale(charge));
  const totals = useTierTotals(charge);
  // `flat` and `per_unit` are one model of the API. A fixed price without a quantity is flat, any other is per unit.
  const isFlat = charge.type === 'FIXED' && charge.min_quantity === '';
  const models = MODELS.filter((model) => model !== (isFlat ? 'per_unit' : 'flat'));
  return (
    <fieldset className={styles.own}>
      <legend className="visually-hidden">{name}</legend>
      <div className={styles.choices}>
        <Choice<PriceModelChoice>
          label={texts.model}
          value={charge.model}
          options={models.map((value) => ({ value, label: texts.modelName(value) }))}
          onValue={(model) => onCharge({ ...charge, model })}
        />
        {isScaled(charge.model) && <ScaleChoice scale={scale} onScale={setScale} />}
      </div>
      {isTiered(charge.model) ? (
        <TierTable
          tiers={charge.tiers}
          onTiers={(tiers) => onCharge({ ...charge, tiers })}
          scale={scale}
          currency={charge.currency}
          totals={totals}
          totalLabel={charge.model === 'volume' ? texts.costAtEnd : texts.tierTotal}
          errorAt={errorAt}
          isReadOnly={false}
        />
      ) : (
        <SinglePrice draft={charge} onDraft={onCharge} scale={scale} errorAt={errorAt} isReadOnly={false} />
      )}
    </fieldset>
  );
}

/** Reads the cost at the end of each tier, which the service computes; null until the charge is complete. */
function useTierTotals(charge: PriceDraft): (string | null)[] {
  const [priced] = useDebouncedValue(charge, TYPING_MS);
  const ends = isTiered(priced.model) ? priced.tiers.map(({ up_to }) => up_to).filter((up_to) => up_to !== '') : [];
  const isKnown = hasCharge(priced) && ends.length > 0;
  const cost = useQuery({ ...buildCostQuery(priced, ends), enabled: isKnown, retry: false });
  return listTierTotals(priced, isKnown && cost.data ? indexCosts(cost.data.quantities, cost.data.items) : new Map());
}
