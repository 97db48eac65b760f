/**
 * Warnings in an answer: the request succeeded, but its effect may be unintended (docs/rules/subscriptions.md, "One meter in two
 * subscriptions").
 */
import { z } from 'zod';
import { describeSharedMeters, type SharedMeterLine } from '../../actions/subscriptions/shared-meters.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import type { Context } from '../http/route.ts';

const Warning = z
  .object({
    code: z.enum(['shared_meter']).meta({
      description: '`shared_meter`: another subscription of the customer also charges the events of the meter.',
    }),
    message: z.string().meta({ description: 'Explanation for people.' }),
    field: z.string().meta({ description: 'Field that the warning refers to.' }),
    meter_id: z.string().meta({ description: 'Id of the meter whose events are charged more than once.' }),
    subscription_ids: z
      .array(z.string())
      .meta({ description: 'Ids of the other subscriptions that charge the events.' }),
  })
  .meta({ id: 'Warning' });
export type Warning = z.output<typeof Warning>;

export const warnings = z
  .array(Warning)
  .nullable()
  .meta({
    description:
      'Meters that another subscription of the customer charges at the same time. Set in the answer to a request ' +
      'that begins lines, empty without such meters; null in other answers. The setting `subscription_config` may ' +
      'refuse such lines.',
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
