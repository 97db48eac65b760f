/**
 * Alert state of a value: the most severe level that it has reached, including the threshold itself. All levels have one direction, that of
 * the most severe level that is set (docs/rules/alerts.md, "States").
 */
import { Decimal, type DecimalInput } from '../../foundation/decimal.ts';
import type { AlertSettings } from '../feature/record.ts';

/** From least to most severe. */
export const ALERT_STATES = ['ok', 'info', 'warning', 'in_alarm'] as const;
export type AlertState = (typeof ALERT_STATES)[number];

const LEVELS = [
  ['critical', 'in_alarm'],
  ['warning', 'warning'],
  ['info', 'info'],
] as const;

export type AlertDirection = 'above' | 'below';
type AlertLevels = Partial<Record<(typeof LEVELS)[number][0], AlertLevel | null>>;
type AlertLevel = { readonly threshold: string; readonly condition?: AlertDirection | null };

export function deriveAlertState(
  settings: AlertLevels,
  value: DecimalInput,
  default_direction: AlertDirection = 'below',
): AlertState {
  const direction = deriveDirection(settings, default_direction);
  return findReachedLevel(settings, value, direction)?.[1] ?? 'ok';
}

/** Threshold of the state; null if the state is `ok`. */
export function findThreshold(settings: AlertLevels, state: AlertState): string | null {
  const level = LEVELS.find(([, reached]) => reached === state);
  return level ? (settings[level[0]]?.threshold ?? null) : null;
}

/** Sets the effective direction on each level. */
export function applyDirection(settings: AlertSettings, default_direction: AlertDirection): AlertSettings {
  const condition = deriveDirection(settings, default_direction);
  const setCondition = (level: AlertSettings['critical']) => level && { ...level, condition };
  return {
    ...settings,
    critical: setCondition(settings.critical),
    warning: setCondition(settings.warning),
    info: setCondition(settings.info),
  };
}

function deriveDirection(settings: AlertLevels, default_direction: AlertDirection): AlertDirection {
  const [worst] = LEVELS.flatMap(([name]) => settings[name] ?? []);
  return worst?.condition ?? default_direction;
}

function findReachedLevel(settings: AlertLevels, value: DecimalInput, direction: AlertDirection) {
  const at = new Decimal(value);
  return LEVELS.find(([name]) => {
    const threshold = settings[name]?.threshold;
    if (threshold === undefined) return false;
    return direction === 'above' ? at.gte(threshold) : at.lte(threshold);
  });
}

export function selectWorseState(a: AlertState, b: AlertState): AlertState {
  return ALERT_STATES.indexOf(a) >= ALERT_STATES.indexOf(b) ? a : b;
}

/**
 * Whether the state of a spend fell at the start of a period and rose again between two checks. Spend begins at 0 in each period. `reached`
 * is the state at the previous check, `carried` the state at the start of the latest period, and `state` the current state.
 */
export function hasFallenBetween(reached: AlertState, carried: AlertState, state: AlertState): boolean {
  const height = (one: AlertState) => ALERT_STATES.indexOf(one);
  return height(carried) < height(reached) && height(carried) < height(state);
}
