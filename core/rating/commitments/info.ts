/** Commitment of one charge, as invoice lines and analytics show it. */
import { z } from 'zod';
import { COMMITMENT_TYPES } from '../../catalog/price/time-buckets.ts';
import type { Decimal } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { decimalText } from '../../foundation/record.ts';
import { RECURRING_PERIODS } from '../../foundation/time/period.ts';
import type { LineCommitment } from './line.ts';
import type { CommittedCharge } from './pool.ts';

export const CommitmentInfo = z
  .object({
    type: z.enum(COMMITMENT_TYPES).meta({ description: 'Whether money or units are committed.' }),
    amount: decimalText.meta({
      description:
        'Committed amount of money for this charge; committed units are priced. With a windowed commitment, the amount for each window.',
    }),
    quantity: decimalText.nullable().meta({ description: 'Committed units; null if money is committed.' }),
    duration: z
      .enum(RECURRING_PERIODS)
      .nullable()
      .meta({ description: 'Term of the commitment; null means the billing period.' }),
    overage_factor: decimalText.nullable().meta({ description: 'Factor on the cost of usage above the commitment.' }),
    true_up_enabled: z.boolean().meta({ description: 'Whether the shortfall is charged.' }),
    is_windowed: z.boolean().meta({ description: 'Whether the commitment applies to each window of the meter.' }),
    computed_true_up_amount: decimalText.meta({ description: 'Shortfall of the commitment that is charged.' }),
    computed_overage_amount: decimalText.meta({ description: 'Charge above the commitment, after the factor.' }),
    computed_commitment_utilized_amount: decimalText.meta({ description: 'Charge that the commitment covers.' }),
  })
  .meta({ id: 'CommitmentInfo' });
export type CommitmentInfo = z.output<typeof CommitmentInfo>;

/** Describes the commitment of a charge for its invoice line or analytics item. `charged` is rounded like the line. */
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
