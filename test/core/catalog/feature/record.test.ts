import { expect } from 'chai';
import { type AlertSettings, checkAlertSettings, deriveLookupKey } from '../../../../core/catalog/feature/record.ts';

describe('a lookup key from a name', () => {
  const cases: [string, string][] = [
    ['API calls', 'api-calls'],
    ['  API calls (v2)! ', 'api-calls-v2'],
    ['gpt-4.1_mini', 'gpt-4-1-mini'],
    ['ｆｕｌｌ width', 'full-width'],
    ['Größe', 'größe'],
    ['日本語', '日本語'],
  ];
  for (const [name, key] of cases) it(`${name} → ${key}`, () => expect(deriveLookupKey(name)).to.equal(key));

  it('is refused where nothing is left', () => {
    for (const name of ['', '!!!', ' – ']) expect(() => deriveLookupKey(name)).to.throw('lookup_key');
  });
});

describe('thresholds of alerts', () => {
  type Level = [threshold: string, condition?: 'above' | 'below'] | null;
  const level = (given: Level) => given && { threshold: given[0], condition: given[1] ?? null };
  const settings = (info: Level, warning: Level, critical: Level, alert_enabled = true): AlertSettings => ({
    alert_enabled,
    info: level(info),
    warning: level(warning),
    critical: level(critical),
  });
  const cases: [string, AlertSettings, boolean][] = [
    ['none, while alerts are off', settings(null, null, null, false), true],
    ['none, while alerts are on', settings(null, null, null), false],
    ['critical only', settings(null, null, ['1', 'above']), true],
    ['info only', settings(['1', 'below'], null, null), true],
    ['warning without critical', settings(null, ['1', 'above'], null), false],
    ['warning without critical, while alerts are off', settings(null, ['1', 'above'], null, false), false],
    ['above: growing', settings(['1', 'above'], ['2', 'above'], ['10', 'above']), true],
    ['above: equal', settings(['2', 'above'], ['2', 'above'], ['2.0', 'above']), true],
    ['above: as numbers, not as texts', settings(null, ['9', 'above'], ['10', 'above']), true],
    ['above: info beyond critical', settings(['3', 'above'], null, ['2', 'above']), false],
    ['above: shrinking', settings(null, ['3', 'above'], ['2', 'above']), false],
    ['below: shrinking', settings(['10', 'below'], ['9', 'below'], ['-1', 'below']), true],
    ['below: growing', settings(null, ['1', 'below'], ['2', 'below']), false],
    ['two conditions', settings(null, ['1', 'below'], ['2', 'above']), false],
    ['one condition of two', settings(null, ['1'], ['2', 'above']), false],
    ['no condition: no direction to be ordered in', settings(null, ['3'], ['2']), true],
  ];
  for (const [what, given, isGood] of cases)
    it(`${isGood ? 'good' : 'refused'}: ${what}`, () => {
      if (isGood) checkAlertSettings(given);
      else expect(() => checkAlertSettings(given)).to.throw('alert_settings');
    });
});
