/** Warnings of an answer: what was done as it was asked for, and may not be meant (docs/rules/subscriptions.md, "One meter in two subscriptions"). */
import { z } from 'zod';
import { describeSharedMeters, type SharedMeterLine } from '../../actions/subscriptions/shared-meters.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Context } from '../http/route.ts';

const Warning = z
  .object({
    code: z.enum(['shared_meter']).meta({
      description: '`shared_meter`: another subscription of the customer charges the events of the meter, too.',
    }),
    message: z.string().meta({ description: 'What is the case, for people.' }),
    field: z.string().meta({ description: 'The field that the warning is about.' }),
    meter_id: z.string().meta({ description: 'The meter whose events are charged more than once.' }),
    subscription_ids: z.array(z.string()).meta({ description: 'The other subscriptions that charge them.' }),
  })
  .meta({ id: 'Warning' });
export type Warning = z.output<typeof Warning>;

export const warnings = z.array(Warning).nullable().meta({
  description:
    'Of the request that begins lines: meters that another subscription of the customer charges at the same time. Empty without; null in other answers. The setting `subscription_config` may refuse such lines.',
});

export async function showWarnings(
  subscription: SubscriptionModel,
  lines: readonly SharedMeterLine[],
  { services }: Context,
): Promise<Warning[]> {
  const shared = await describeSharedMeters(services.postgres, subscription, lines);
  return shared.map(({ meter_id, subscription_ids, message }) => ({
    code: 'shared_meter',
    message,
    field: 'meter_id',
    meter_id,
    subscription_ids: [...subscription_ids],
  }));
}

/** Warnings cover all lines of a subscription, or only the lines that an add-on brought. */
export async function showSubscriptionWarnings(
  subscription: SubscriptionModel,
  context: Context,
  of: { addon_association_id?: string } = {},
): Promise<Warning[]> {
  const lines = await SubscriptionLineItemModel.in(context.scope, context.services.postgres)
    .where({ subscription_id: subscription.id, status: 'published', price_type: 'USAGE' })
    .where(of);
  return showWarnings(subscription, lines, context);
}
