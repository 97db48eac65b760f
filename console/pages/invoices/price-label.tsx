/** The price of a line in a few words: "$30.00 / 1 M", "graduated, 3 tiers". */
import type { ReactNode } from 'react';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Unknown } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { InvoiceLine } from './invoice.ts';
import { TEXTS } from './texts.ts';
import { POWER_NAMES, toReadablePrice } from './thread/explain-line.ts';

type LabelledPrice = {
  billing_model?: string;
  amount?: string | null;
  tier_mode?: string | null;
  tiers?: unknown[] | null;
  transform_quantity?: { divide_by?: number | string } | null;
};

export function PriceLabel({ line }: { line: InvoiceLine }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const price = line.computed_from?.price as LabelledPrice | null | undefined;
  if (!price) return <Unknown />;
  const { billing_model, tiers, tier_mode, amount, transform_quantity } = price;
  if (billing_model === 'TIERED')
    return tier_mode === 'VOLUME' ? texts.volume(tiers?.length ?? 0) : texts.graduated(tiers?.length ?? 0);
  if (!amount) return <Unknown />;
  if (billing_model === 'PACKAGE')
    return texts.per(
      formatMoney(language, amount, line.currency),
      formatQuantity(language, String(transform_quantity?.divide_by ?? '1')),
    );
  const { amount: readable, power } = toReadablePrice(amount);
  const shown = formatMoney(language, readable, line.currency);
  return power === 0 ? shown : texts.per(shown, POWER_NAMES[power]);
}
