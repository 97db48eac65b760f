/** What holds for every alert: a value that gets worse never gets a milder state, and thresholds are reached by themselves. */
import { expect } from 'chai';
import fc from 'fast-check';
import { defineSpendAlert } from '../../../../core/catalog/alert/record.ts';
import {
  ALERT_STATES,
  applyDirection,
  deriveAlertState,
  findThreshold,
  hasFallenBetween,
  selectWorseState,
} from '../../../../core/catalog/alert/state.ts';
import { type AlertSettings, checkAlertSettings } from '../../../../core/catalog/feature/record.ts';
import { Decimal } from '../../../../core/foundation/decimal.ts';

const cents = fc.integer({ min: -100_000, max: 100_000 }).map((n) => new Decimal(n).dividedBy(100).toFixed());

/** Settings as they may be: ordered, in one direction, a warning only with something critical. */
const settings: fc.Arbitrary<{ settings: AlertSettings; direction: 'above' | 'below' }> = fc
  .record({
    thresholds: fc.array(cents, { minLength: 3, maxLength: 3 }),
    direction: fc.constantFrom('above' as const, 'below' as const),
    has: fc.constantFrom('cwi', 'cw', 'c', 'ci', 'i'),
  })
  .map(({ thresholds, direction, has }) => {
    const [info, warning, critical] = thresholds
      .toSorted((a, b) => new Decimal(a).comparedTo(b) * (direction === 'above' ? 1 : -1))
      .map((threshold) => ({ threshold, condition: direction }));
    const where = (letter: string, level: typeof info) => (has.includes(letter) ? level! : null);
    const made = {
      alert_enabled: true,
      critical: where('c', critical),
      warning: where('w', warning),
      info: where('i', info),
    };
    checkAlertSettings(made);
    return { settings: made, direction };
  });

const rank = (state: (typeof ALERT_STATES)[number]) => ALERT_STATES.indexOf(state);

describe('core/catalog/alert', () => {
  it('a value further in the direction of the levels is never in a milder state', () => {
    fc.assert(
      fc.property(settings, cents, cents, ({ settings: levels, direction }, a, b) => {
        const [near, far] = new Decimal(a).lt(b) === (direction === 'above') ? [a, b] : [b, a];
        expect(rank(deriveAlertState(levels, far))).to.be.at.least(rank(deriveAlertState(levels, near)));
      }),
    );
  });

  it('a threshold is reached by itself, and its state names it', () => {
    fc.assert(
      fc.property(settings, ({ settings: levels }) => {
        for (const level of [levels.critical, levels.warning, levels.info]) {
          if (!level) continue;
          const state = deriveAlertState(levels, level.threshold);
          expect(state).to.not.equal('ok');
          expect(new Decimal(findThreshold(levels, state)!).eq(level.threshold)).to.equal(true);
        }
        expect(findThreshold(levels, 'ok')).to.equal(null);
      }),
    );
  });

  it('levels without a direction have the one that they are given, and are the same with it', () => {
    fc.assert(
      fc.property(settings, cents, ({ settings: levels, direction }, value) => {
        const bare = (level: AlertSettings['info']) => level && { ...level, condition: null };
        const undirected = {
          ...levels,
          critical: bare(levels.critical),
          warning: bare(levels.warning),
          info: bare(levels.info),
        };
        expect(deriveAlertState(undirected, value, direction)).to.equal(deriveAlertState(levels, value));
        expect(applyDirection(undirected, direction)).to.deep.equal(levels);
      }),
    );
  });

  it('the worse of two states is the same whichever comes first', () => {
    fc.assert(
      fc.property(fc.constantFrom(...ALERT_STATES), fc.constantFrom(...ALERT_STATES), (a, b) => {
        expect(selectWorseState(a, b)).to.equal(selectWorseState(b, a));
        expect(rank(selectWorseState(a, b))).to.equal(Math.max(rank(a), rank(b)));
      }),
    );
  });

  it('spending has fallen in between where it is higher than at the begin of a period, and was', () => {
    expect(hasFallenBetween('in_alarm', 'ok', 'in_alarm')).to.equal(true);
    // What is ok at the look is told by that, and what goes on needs no telling.
    expect(hasFallenBetween('in_alarm', 'ok', 'ok')).to.equal(false);
    expect(hasFallenBetween('info', 'warning', 'in_alarm')).to.equal(false);
  });

  it('spending is looked at from below, of what belongs to a subscription', () => {
    const stated = {
      entity_type: 'subscription' as const,
      entity_id: 'subs_1',
      parent_entity_type: null,
      parent_entity_id: null,
      config: { alert_enabled: true, critical: { threshold: '5', condition: null }, warning: null, info: null },
    };
    expect(defineSpendAlert(stated).config.critical).to.deep.equal({ threshold: '5', condition: 'above' });
    const refused = (changes: object) => () => defineSpendAlert({ ...stated, ...changes });
    expect(refused({ entity_type: 'wallet' })).to.throw(/entity_type/);
    expect(refused({ parent_entity_id: 'subs_2' })).to.throw(/parent_entity_id/);
    expect(refused({ entity_type: 'group' })).to.throw(/parent_entity_type/);
    expect(refused({ entity_type: 'group', parent_entity_type: 'subscription' })).to.throw(/parent_entity_id/);
    const below = { ...stated.config, critical: { threshold: '5', condition: 'below' } };
    expect(refused({ config: below })).to.throw(/config.critical.condition/);
    expect(refused({ config: { ...stated.config, critical: null } })).to.throw(/config/);
  });
});
