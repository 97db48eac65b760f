import { expect } from 'chai';
import { invalid, unavailable } from '../../core/foundation/error.ts';
import { explain } from '../../process/explain.ts';

describe('the last words of a process', () => {
  const cases: [what: string, error: unknown, said: RegExp | string][] = [
    [
      'a port that is taken',
      Object.assign(new Error('listen'), { code: 'EADDRINUSE', port: 8080 }),
      'port 8080 is taken: set PORT (or INTERNAL_PORT) to another one',
    ],
    [
      'a directory that is not ours',
      Object.assign(new Error("open '/data'"), { code: 'EACCES' }),
      "not allowed: open '/data'",
    ],
    ['a setting', new Error('configuration: PORT must be a number'), 'configuration: PORT must be a number'],
    ['one of our own errors', invalid('--to', 'is required'), '--to: is required'],
    [
      'a store that is away, with the reason',
      unavailable('Postgres', new Error('connect ECONNREFUSED')),
      /Postgres.*\(connect ECONNREFUSED\)$/,
    ],
    ['anything else, with its stack', new TypeError('x is not a function'), /^TypeError: x is not a function\n {4}at /],
    ['what is no error at all', 'thrown text', 'thrown text'],
  ];
  for (const [what, error, said] of cases)
    it(what, () =>
      typeof said === 'string' ? expect(explain(error)).to.equal(said) : expect(explain(error)).to.match(said),
    );
});
