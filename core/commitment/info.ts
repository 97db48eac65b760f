/** What an invoice line and the analytics say of a commitment, as it stood for this charge. */
import { z } from 'zod';
import type { Decimal } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import { COMMITMENT_TYPES } from '../price/time-buckets.ts';
import { decimalText } from '../record.ts';
import { RECURRING_PERIODS } from '../time/period.ts';
import type { LineCommitment } from './line.ts';
import type { CommittedCharge } from './pool.ts';

export const CommitmentInfo = z
  .object({
    type: z.enum(COMMITMENT_TYPES).meta({ description: 'Whether money or units are committed to.' }),
    amount: decimalText.meta({
      description: 'The committed money as it stood for this charge, units priced; of a windowed one that of a window.',
    }),
    quantity: decimalText.nullable().meta({ description: 'The committed units; null where money is committed to.' }),
    duration: z.enum(RECURRING_PERIODS).nullable().meta({ description: 'The term; null is the billing period.' }),
    overage_factor: decimalText.nullable().meta({ description: 'What is above costs so many times as much.' }),
    true_up_enabled: z.boolean().meta({ description: 'Whether what is lacking is charged.' }),
    is_windowed: z.boolean().meta({ description: 'Whether each window of the meter has the commitment.' }),
    computed_true_up_amount: decimalText.meta({ description: 'Charged because it was lacking.' }),
    computed_overage_amount: decimalText.meta({ description: 'Charged above the commitment, after the factor.' }),
    computed_commitment_utilized_amount: decimalText.meta({ description: 'Paid out of the commitment.' }),
  })
  .meta({ id: 'CommitmentInfo' });
export type CommitmentInfo = z.output<typeof CommitmentInfo>;

/** `charged` is rounded, as the line is. */
export function commitmentInfo(
  { type, value, duration, overage_factor, true_up, windows }: LineCommitment,
  { amount, charged, currency }: { amount: Decimal; charged: CommittedCharge; currency: string },
): CommitmentInfo {
  return {
    type,
    amount: roundMoney(amount, currency).toFixed(),
    quantity: type === 'quantity' ? (value?.toFixed() ?? null) : null,
    duration,
    overage_factor: overage_factor.toFixed(),
    true_up_enabled: true_up,
    is_windowed: windows !== null,
    ...computedText(charged),
  };
}

export function computedText({ utilized, overage, true_up }: Omit<CommittedCharge, 'charge'>) {
  return {
    computed_true_up_amount: true_up.toFixed(),
    computed_overage_amount: overage.toFixed(),
    computed_commitment_utilized_amount: utilized.toFixed(),
  };
}
