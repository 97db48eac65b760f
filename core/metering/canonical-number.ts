/**
 * One text for one number in any notation: 1e6, 1000000 and 1000000.0 are one value. A filter or a distinct count
 * therefore does not depend on how a producer's library prints numbers (docs/rules/numbers.md, "One text for one
 * number"). A number with more than 40 digits before or after the point is written as digits and a power of ten.
 */
const JSON_NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;
const PLAIN_DIGITS = 40n;

/** The canonical text of a JSON number. Integers and plain fractions that do not end in 0 are canonical already. */
export function canonicalNumber(text: string): string {
  let hasPoint = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 46) hasPoint = true;
    else if (code !== 45 && (code < 48 || code > 57)) return rewritten(text);
  }
  if (text.length > 40 || text === '-0' || (hasPoint && text.charCodeAt(text.length - 1) === 48))
    return rewritten(text);
  return text;
}

/** Returns the one text of a number; undefined if the text is not a JSON number. */
export function canonicalIfNumber(text: string): string | undefined {
  return JSON_NUMBER.test(text) ? canonicalNumber(text) : undefined;
}

/** Writes a number in canonical form. The power of ten is a bigint, because a sender may write 1e99999999999999999999. */
function rewritten(text: string): string {
  const parts = JSON_NUMBER.exec(text);
  if (parts === null) throw new RangeError('not a JSON number');
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts;
  const written = whole + fraction;
  let first = 0;
  while (first < written.length && written.charCodeAt(first) === 48) first++;
  if (first === written.length) return '0';
  let last = written.length;
  while (written.charCodeAt(last - 1) === 48) last--;
  const digits = written.slice(first, last);
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(written.length - last);
  return sign + placed(digits, power);
}

function placed(digits: string, power: bigint): string {
  const whole = BigInt(digits.length) + power;
  if (whole > PLAIN_DIGITS || power < -PLAIN_DIGITS) return `${digits}e${power}`;
  if (power >= 0n) return digits + '0'.repeat(Number(power));
  if (whole > 0n) return `${digits.slice(0, Number(whole))}.${digits.slice(Number(whole))}`;
  return `0.${'0'.repeat(Number(-whole))}${digits}`;
}
