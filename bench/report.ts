/** Output of the benchmarks. */

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!;
}

/** Number of `--name=value`, or the default. */
export function flag(name: string, otherwise: number): number {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`));
  const value = given === undefined ? otherwise : Number(given.slice(name.length + 3));
  if (!Number.isFinite(value)) throw new Error(`--${name} must be a number`);
  return value;
}

/** Text of `--name=value`. */
export function textFlag(name: string): string | undefined {
  return process.argv.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3);
}

export function hasFlag(name: string): boolean {
  return process.argv.includes(`--${name}`);
}

export function say(line = ''): void {
  console.log(line);
}

/** Prints one result: the measure, its value, its target, and whether the target is met. */
export function claim(name: string, measured: string, must: string, isMet: boolean): void {
  say(`  ${isMet ? 'reached ' : 'MISSED  '} ${name}: ${measured} (must: ${must})`);
}

/** Throws for a wrong result, because a fast benchmark with wrong results is worthless. */
export function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`wrong result: ${what}`);
}

export function micros(seconds: number, events: number): number {
  return (seconds / events) * 1e6;
}

export function fixed(value: number, digits = 1): string {
  return value.toFixed(digits);
}
