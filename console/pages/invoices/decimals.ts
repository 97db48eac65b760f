/** Exact sums of decimal strings, for sums that are written out. Amounts of money are never computed here, only shown. */

type Scaled = { readonly digits: bigint; readonly places: number };

export function addDecimals(texts: readonly string[]): string {
  const parts = texts.map(parseDecimal);
  const places = Math.max(0, ...parts.map((part) => part.places));
  return formatScaled({
    digits: parts.reduce((sum, part) => sum + part.digits * 10n ** BigInt(places - part.places), 0n),
    places,
  });
}

/** `text` × 10^power. */
export function shiftDecimal(text: string, power: number): string {
  const { digits, places } = parseDecimal(text);
  return places >= power
    ? formatScaled({ digits, places: places - power })
    : formatScaled({ digits: digits * 10n ** BigInt(power - places), places: 0 });
}

/** -1, 0 or 1. */
export function compareDecimals(left: string, right: string): number {
  const { digits } = parseDecimal(addDecimals([left, negateDecimal(right)]));
  return digits < 0n ? -1 : digits > 0n ? 1 : 0;
}

export function negateDecimal(text: string): string {
  const { digits, places } = parseDecimal(text);
  return formatScaled({ digits: -digits, places });
}

export function isZero(text: string): boolean {
  return parseDecimal(text).digits === 0n;
}

function parseDecimal(text: string): Scaled {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined) throw new Error(`${text} is no decimal number`);
  return { digits: BigInt(`${whole}${fraction}`) * (sign === '-' ? -1n : 1n), places: fraction.length };
}

function formatScaled({ digits, places }: Scaled): string {
  const text = (digits < 0n ? -digits : digits).toString().padStart(places + 1, '0');
  const fraction = places === 0 ? '' : text.slice(-places).replace(/0+$/, '');
  const whole = text.slice(0, text.length - places);
  return `${digits < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}
