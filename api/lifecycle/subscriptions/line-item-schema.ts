/** Requests about lines of an existing subscription. */
import { z } from 'zod';
import { criticalFields } from '../../../core/catalog/price/record.ts';
import { anyCase, decimalText, metadataMap, orNull, timestampText } from '../../../core/foundation/record.ts';
import { extraLineItemShape } from '../../../core/subscriptions/line-shapes.ts';
import { PRORATION_BEHAVIORS } from '../../../core/subscriptions/record.ts';

const prorationBehavior = orNull(anyCase(PRORATION_BEHAVIORS)).meta({
  description:
    'Proration of advance charges. create_prorations charges or credits them from the instant of the change ' +
    'on. none charges from the next period on, and credits nothing. Default create_prorations.',
});

const { start_date, end_date, commitment_time_buckets } = extraLineItemShape.shape;

export const AddLineItem = extraLineItemShape
  .extend({
    start_date: start_date.meta({
      description: 'Start of the charge. Default now; refused before the current period.',
    }),
    end_date: end_date.meta({ description: 'End of the charge, exclusive. Default: the end of the subscription.' }),
    subscription_phase_id: orNull(z.string()).meta({
      description: 'Id of a phase of the subscription. The line must lie within it. Default dates: those of the phase.',
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
      description: 'Number of units of a fixed line from `effective_from` on. Default: unchanged.',
    }),
    effective_from: orNull(timestampText).meta({
      description: 'Start of the new charge. Default now; refused before the current period.',
    }),
    proration_behavior: prorationBehavior,
    metadata: metadataMap.nullish(),
  })
  .meta({ id: 'UpdateSubscriptionLineItemRequest', example: { amount: '30', metadata: { offer: '2026-02' } } });

export const EndLineItem = z
  .object({
    effective_from: orNull(timestampText).meta({
      description: 'End of the charge. Default now; refused before the current period.',
    }),
    proration_behavior: prorationBehavior,
  })
  .meta({ id: 'DeleteSubscriptionLineItemRequest', example: { proration_behavior: 'none' } });
