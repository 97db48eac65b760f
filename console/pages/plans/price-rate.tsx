/** The charge of a stored price in one line: "$30.00 to $10.22 per million, 3 tiers". */
import type { ReactNode } from 'react';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { defineTexts, useLanguage, useTexts } from '../../texts/texts.ts';
import type { PlanPrice } from './plan-queries.ts';
import { toDraft } from './price-draft.ts';
import { chooseScale, scalePrice } from './price-figures.ts';
import { PRICE_TEXTS } from './price-texts.ts';

export function PriceRate({ price }: { price: PlanPrice }): ReactNode {
  const texts = useTexts(TEXTS);
  const { perScale } = useTexts(PRICE_TEXTS);
  const language = useLanguage();
  if (price.price_unit !== null) return texts.inUnit(price.price_unit);
  const draft = toDraft(price);
  const scale = chooseScale(draft);
  const money = (amount: string) => formatMoney(language, amount, price.currency);
  if (draft.model === 'flat') return money(draft.amount);
  if (draft.model === 'per_unit') return `${money(scalePrice(draft.amount, scale))} ${perScale(scale)}`;
  if (draft.model === 'package') return texts.package(money(draft.amount), formatQuantity(language, draft.divide_by));
  const first = draft.tiers[0]!.unit_amount;
  const last = draft.tiers.at(-1)!.unit_amount;
  return texts.tiers(
    money(scalePrice(first, scale)),
    money(scalePrice(last, scale)),
    perScale(scale),
    draft.tiers.length,
  );
}

const TEXTS = defineTexts(
  {
    package: (amount: string, size: string) => `${amount} per ${size}`,
    tiers: (first: string, last: string, scale: string, count: number) =>
      count === 1 ? `${first} ${scale}` : `${first} to ${last} ${scale}, ${count} tiers`,
    inUnit: (unit: string) => `in ${unit}`,
  },
  {
    de: {
      package: (amount, size) => `${amount} je ${size}`,
      tiers: (first, last, scale, count) =>
        count === 1 ? `${first} ${scale}` : `${first} bis ${last} ${scale}, ${count} Stufen`,
      inUnit: (unit) => `in ${unit}`,
    },
  },
);
