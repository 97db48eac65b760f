/** Requests about lines of a subscription that is there. */
import { z } from 'zod';
import { criticalFields } from '../../core/price/record.ts';
import { anyCase, decimalText, metadataMap, orNull, timestampText } from '../../core/record.ts';
import { extraLineItemShape } from '../../core/subscription/line-shapes.ts';
import { PRORATION_BEHAVIORS } from '../../core/subscription/record.ts';

const prorationBehavior = orNull(anyCase(PRORATION_BEHAVIORS)).meta({
  description:
    'create_prorations, also when absent: what is charged in advance is charged, or credited, from that instant on. none: it is charged from the next period on, and not credited.',
});

const { start_date, end_date, commitment_time_buckets } = extraLineItemShape.shape;

export const AddLineItem = extraLineItemShape
  .extend({
    start_date: start_date.meta({
      description: 'From when on it is charged, not before the running period; now when absent.',
    }),
    end_date: end_date.meta({ description: 'Until when, exclusive; until the end of the subscription when absent.' }),
    subscription_phase_id: orNull(z.string()).meta({
      description: 'A phase of the subscription: it begins and ends within it, with it when no dates are stated.',
    }),
    proration_behavior: prorationBehavior,
  })
  .meta({
    id: 'CreateSubscriptionLineItemRequest',
    example: {
      price: {
        type: 'FIXED',
        billing_model: 'FLAT_FEE',
        billing_period: 'MONTHLY',
        invoice_cadence: 'ADVANCE',
        price_unit_type: 'FIAT',
        amount: '25',
        display_name: 'Support',
      },
      quantity: '2',
    },
  });

const commitments = extraLineItemShape.pick({
  commitment_amount: true,
  commitment_quantity: true,
  commitment_type: true,
  commitment_overage_factor: true,
  commitment_true_up_enabled: true,
  commitment_windowed: true,
  commitment_duration: true,
}).shape;

export const ChangeLineItem = z
  .object({
    ...criticalFields,
    ...commitments,
    commitment_time_buckets,
    quantity: orNull(decimalText).meta({
      description: 'Of a fixed line how many units are charged from then on; those that it has when absent.',
    }),
    effective_from: orNull(timestampText).meta({
      description: 'When it begins to charge differently, not before the running period; now when absent.',
    }),
    proration_behavior: prorationBehavior,
    metadata: metadataMap.nullish(),
  })
  .meta({ id: 'UpdateSubscriptionLineItemRequest', example: { amount: '30', metadata: { offer: '2026-02' } } });

export const EndLineItem = z
  .object({
    effective_from: orNull(timestampText).meta({
      description: 'From when on it is not charged any more, not before the running period; now when absent.',
    }),
    proration_behavior: prorationBehavior,
  })
  .meta({ id: 'DeleteSubscriptionLineItemRequest', example: { proration_behavior: 'none' } });
