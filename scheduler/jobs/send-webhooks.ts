/** Tells events to the endpoints that want them: what happened since the last run, and what was asked for again. */

import { InHand, type SendReport } from '../../actions/webhooks/in-hand.ts';
import type { Sent, WebhookServices } from '../../actions/webhooks/send-delivery.ts';
import { sendDue } from '../../actions/webhooks/send-due.ts';
import type { RetryRules } from '../../core/webhook/schedule.ts';
import type { Job } from '../job.ts';

export type SendOptions = RetryRules & {
  readonly every_seconds: number;
  readonly onSent?: (sent: Sent) => void;
};

/** Then the next run goes on, which has the instant of its own; what is on its way is left to it. */
const RUN_MS_MAX = 30_000;

export function sendWebhooksJob(services: WebhookServices, { every_seconds, onSent, ...rules }: SendOptions): Job {
  const in_hand = new InHand();
  return {
    name: 'send-webhooks',
    every_seconds,
    async run(now) {
      const until = performance.now() + RUN_MS_MAX;
      const mayGoOn = () => performance.now() < until;
      const sending = {
        clock: clockFrom(now),
        which: 'first' as const,
        in_hand,
        ...rules,
        mayGoOn,
        ...(onSent ? { onSent } : {}),
      };
      return reportOf(await sendDue(services, sending));
    },
    end: () => in_hand.end(),
  };
}

/** To the second. */
export function clockFrom(now: Date): () => Date {
  const began = performance.now();
  return () => new Date(now.getTime() + Math.floor((performance.now() - began) / 1_000) * 1_000);
}

/** A receiver that does not take something is no failure of the job. */
export function reportOf({ dispatched, delivered, failed, given_up }: SendReport) {
  return { done: { dispatched, delivered, refused: failed, given_up }, waiting: [], failed: [] };
}
