/** Figures of a thread as texts, for sums that are written out and for readers of the screen. */
import { formatMoney } from '../../../figures/format.ts';
import type { Language } from '../../../texts/texts.ts';
import { POWER_NAMES, type PricedPart, toReadablePrice } from './explain-line.ts';

/** "× 30.00 / 1 M", with the flat amount of a tier behind it. */
export function formatTimes(language: Language, { unit_amount, flat_amount }: PricedPart): string {
  const { amount, power } = toReadablePrice(unit_amount);
  const price = `× ${formatMoney(language, amount, null)}${power === 0 ? '' : ` / ${POWER_NAMES[power]}`}`;
  return flat_amount === null ? price : `${price} + ${formatMoney(language, flat_amount, null)}`;
}

/** The ends of a hash, which suffice to compare it by eye. */
export function shortenHash(hash: string): string {
  return hash.length <= 12 ? hash : `${hash.slice(0, 4)}…${hash.slice(-4)}`;
}
