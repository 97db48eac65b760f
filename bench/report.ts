/** How benchmarks say what they found. */

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!;
}

/** A number from `--name=value`, or what it is without. */
export function flag(name: string, otherwise: number): number {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`));
  const value = given === undefined ? otherwise : Number(given.slice(name.length + 3));
  if (!Number.isFinite(value)) throw new Error(`--${name} must be a number`);
  return value;
}

export function hasFlag(name: string): boolean {
  return process.argv.includes(`--${name}`);
}

export function say(line = ''): void {
  console.log(line);
}

/** One line of result: the measure, what came out, what it must be, and whether it is. */
export function claim(name: string, measured: string, must: string, isMet: boolean): void {
  say(`  ${isMet ? 'reached ' : 'MISSED  '} ${name}: ${measured} (must: ${must})`);
}

/** Numbers that are wrong make a fast benchmark worthless. */
export function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`wrong result: ${what}`);
}

export function micros(seconds: number, events: number): number {
  return (seconds / events) * 1e6;
}

export function fixed(value: number, digits = 1): string {
  return value.toFixed(digits);
}
