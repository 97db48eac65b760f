/** Sends system events to their endpoints: those that happened since the last run, and requested resends. */

import { InFlightDeliveries, type SendReport } from '../../actions/delivery/webhooks/in-flight.ts';
import type { DeliveryResult, WebhookServices } from '../../actions/delivery/webhooks/send-delivery.ts';
import { sendDue } from '../../actions/delivery/webhooks/send-due.ts';
import type { RetryRules } from '../../core/platform/webhook/schedule.ts';
import type { ScheduledJob } from '../job.ts';

export type SendOptions = RetryRules & {
  readonly every_seconds: number;
  readonly onSent?: (sent: DeliveryResult) => void;
};

/** Maximum duration of a run. The next run continues with the deliveries that are still in flight. */
const RUN_MS_MAX = 30_000;

export function sendWebhooksJob(
  services: WebhookServices,
  { every_seconds, onSent, ...rules }: SendOptions,
): ScheduledJob {
  const in_hand = new InFlightDeliveries();
  return {
    name: 'send-webhooks',
    every_seconds,
    async run(now) {
      const until = performance.now() + RUN_MS_MAX;
      const mayGoOn = () => performance.now() < until;
      const sending = {
        clock: createClock(now),
        which: 'first' as const,
        in_hand,
        ...rules,
        mayGoOn,
        ...(onSent ? { onSent } : {}),
      };
      return toJobReport(await sendDue(services, sending));
    },
    end: () => in_hand.end(),
  };
}

/** Creates a clock that starts at `now` and advances in whole seconds with the machine's monotonic clock. */
export function createClock(now: Date): () => Date {
  const began = performance.now();
  return () => new Date(now.getTime() + Math.floor((performance.now() - began) / 1_000) * 1_000);
}

/** Builds the report of a run. A delivery that a receiver rejects is no failure of the job. */
export function toJobReport({ dispatched, delivered, failed, given_up }: SendReport) {
  return { done: { dispatched, delivered, refused: failed, given_up }, waiting: [], failed: [] };
}
