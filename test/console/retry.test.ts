/** Which failed reads the console repeats, and when. */
import { expect } from 'chai';
import { ApiError } from '../../console/client/client.ts';
import { getRetryDelay, shouldRetry } from '../../console/client/retry.ts';

const refuse = (status: number, retry_after?: string) =>
  new ApiError(status, null, new Headers(retry_after === undefined ? {} : { 'retry-after': retry_after }));

describe('a read of the console that failed', () => {
  for (const [name, error, isRepeated] of [
    ['a wrong request', refuse(400), false],
    ['a missing record', refuse(404), false],
    ['too many requests', refuse(429), true],
    ['a service that is busy', refuse(503), true],
    ['a service that wants it in half a minute', refuse(429, '30'), true],
    ['a service that wants it later', refuse(429, '31'), false],
    ['a lost connection', new TypeError('Failed to fetch'), true],
  ] as const)
    it(`is ${isRepeated ? '' : 'not '}repeated after ${name}, twice at most`, () => {
      expect([0, 1, 2].map((count) => shouldRetry(count, error))).to.deep.equal([isRepeated, isRepeated, false]);
    });

  for (const [name, error, delays] of [
    ['after the time that the service wants', refuse(503, '7'), [7_000, 7_000]],
    ['later each time, if the time is empty', refuse(503, ''), [1_000, 2_000]],
    ['later each time, if the time is negative', refuse(503, '-5'), [1_000, 2_000]],
    ['later each time, if the service names no time', refuse(503), [1_000, 2_000]],
    [
      'later each time, if the time is not a number of seconds',
      refuse(503, 'Wed, 21 Oct 2026 07:28:00 GMT'),
      [1_000, 2_000],
    ],
    ['later each time after a lost connection', new TypeError('Failed to fetch'), [1_000, 2_000]],
  ] as const)
    it(`is repeated ${name}`, () => {
      expect([0, 1].map((count) => getRetryDelay(count, error))).to.deep.equal(delays);
    });
});
