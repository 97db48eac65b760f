/**
 * Resends failed webhooks that are due, the newest first, within the configured rate (docs/rules/webhooks.md, "Tried again"). A delivery
 * that is too old, or failed too often, is given up.
 */
import { TokenBucket } from 'limiter';
import { InFlightDeliveries } from '../../actions/delivery/webhooks/in-flight.ts';
import type { WebhookServices } from '../../actions/delivery/webhooks/send-delivery.ts';
import { sendDue } from '../../actions/delivery/webhooks/send-due.ts';
import { RETRY_WINDOW_MS } from '../../core/platform/webhook/schedule.ts';
import { giveUpOld } from '../../storage/queue/due-deliveries.ts';
import type { ScheduledJob } from '../job.ts';
import { createClock, type SendOptions, toJobReport } from './send-webhooks.ts';

type RetryOptions = SendOptions & {
  readonly rate_limit: number;
};

const RUN_MS_MAX = 45_000;

export function retryWebhooksJob(services: WebhookServices, options: RetryOptions): ScheduledJob {
  const { every_seconds, rate_limit, onSent, ...rules } = options;
  const in_hand = new InFlightDeliveries();
  return {
    name: 'retry-webhooks',
    every_seconds,
    async run(now) {
      const emitted_before = new Date(now.getTime() - RETRY_WINDOW_MS);
      const { has_targets } = services.backend;
      const expired = await giveUpOld(services.postgres, { emitted_before, has_targets, now });
      if (rules.enabled === false) return { done: { expired }, waiting: [], failed: [] };
      const until = performance.now() + RUN_MS_MAX;
      const report = toJobReport(
        await sendDue(services, {
          clock: createClock(now),
          which: 'again',
          in_hand,
          ...rules,
          permit: createPermits(rate_limit),
          mayGoOn: () => performance.now() < until,
          ...(onSent ? { onSent } : {}),
        }),
      );
      return { ...report, done: { ...report.done, expired } };
    },
    end: () => in_hand.end(),
  };
}

/** Limits the rate of resends by a token bucket. It is full at the start of a run, so the first resends need not wait. */
function createPermits(rate_limit: number): () => Promise<unknown> {
  const bucket = new TokenBucket({ bucketSize: rate_limit, tokensPerInterval: rate_limit, interval: 'second' });
  bucket.content = rate_limit;
  return () => bucket.removeTokens(1);
}
