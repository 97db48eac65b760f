/** Events that say no time, in an environment with a clock of its own. */
import { expect } from 'chai';
import { parseEventTime } from '../../../../core/foundation/time/instant.ts';
import { addTimestamp, isTimestampSent } from '../../../../core/metering/event/timed.ts';

const NOW = Date.UTC(2031, 0, 1);
const timed = (text: string) => addTimestamp(text, { start: 0, end: text.length }, NOW);

describe('events without a time', () => {
  it('get the instant of the clock, as one that nobody stated', () => {
    const given = '"2031-01-01T00:00:00.000-00:00"';
    const cases = [
      ['{}', `{"timestamp":${given}}`],
      ['{"event_name":"a"}', `{"timestamp":${given},"event_name":"a"}`],
      ['{"timestamp":null,"n":1}', `{"timestamp":${given},"n":1}`],
      ['{"timestamp":"","n":1}', `{"timestamp":${given},"n":1}`],
      ['{"timestamp":"0001-01-01T00:00:00Z"}', `{"timestamp":${given}}`],
    ];
    for (const [text, said] of cases) expect(timed(text!)).to.equal(said);
    const text = given.slice(1, -1);
    expect([isTimestampSent(text), parseEventTime(text)]).to.deep.equal([false, NOW * 1000]);
  });

  it('a time that is stated stays, also one that cannot be read', () => {
    for (const time of ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00+01:00', 'soon']) {
      const text = JSON.stringify({ timestamp: time });
      expect(timed(text)).to.equal(text);
      expect(isTimestampSent(time)).to.equal(true);
    }
  });
});
