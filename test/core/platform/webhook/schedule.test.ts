import { expect } from 'chai';
import {
  computeNextDeliveryAttempt,
  deriveMaxAttempts,
  shouldDisableEndpoint,
} from '../../../../core/platform/webhook/schedule.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('when a webhook is tried again', () => {
  for (const [failure_count, age, max_attempts, expected] of [
    [1, 0, 5, MINUTE],
    [2, MINUTE, 5, 10 * MINUTE],
    [3, 11 * MINUTE, 5, HOUR],
    [4, 71 * MINUTE, 5, 12 * HOUR],
    [5, 14 * HOUR, 5, null],
    [5, 14 * HOUR, 6, DAY],
    [6, 38 * HOUR, 9, null], // A day later it would be older than 48 hours.
    [6, 24 * HOUR, 9, DAY],
    [6, 24 * HOUR + 1, 9, null],
    [1, 0, 1, null],
  ] as const)
    it(`${failure_count} of ${max_attempts} failures, ${age / MINUTE} minutes after the event`, () => {
      const next = computeNextDeliveryAttempt({ failure_count, emitted_at: 1_000, now: 1_000 + age }, max_attempts);
      expect(next === null ? null : next - 1_000 - age).to.equal(expected);
    });

  for (const [what, rules, expected] of [
    ['nothing said', {}, 5],
    ['switched off', { enabled: false }, 1],
    ['its tenant excluded', { excluded_tenants: ['tenant_a'] }, 1],
    ['another excluded', { excluded_tenants: ['tenant_b'] }, 5],
    ['its name allowed', { allowed_event_types: ['customer.created'] }, 5],
    ['another allowed', { allowed_event_types: ['invoice.finalized'] }, 1],
  ] as const)
    it(`${expected} times with ${what}`, () => {
      const delivery = { tenant_id: 'tenant_a', event_name: 'customer.created' };
      expect(deriveMaxAttempts(delivery, { max_attempts: 5, ...rules })).to.equal(expected);
    });

  for (const [failures, days, expected] of [
    [9, 30, false],
    [10, 5, true],
    [10, 4.99, false],
    [100, 0, false],
  ] as const)
    it(`an endpoint with ${failures} failures in ${days} days is ${expected ? '' : 'not '}switched off`, () => {
      expect(shouldDisableEndpoint({ since: 0, failures, now: days * DAY })).to.equal(expected);
    });
});
