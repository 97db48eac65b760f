/**
 * Requests of each kind, beside bare Express in the same run. Without flags it prints the CPU of this checkout. With `--against <commit>` it
 * compares with that commit, or with another checkout by its folder, in five interleaved pairs (`--pairs`).
 *
 * `--part=cpu|growth|capacity|overload` runs one part, and `--part=start` measures starts instead; `--kinds=a,b` measures only these kinds; `--seconds=3` is the time for each kind;
 * `--events=1000000` is the larger number of events for `GET /events/{id}`; `--step=15` is the number of seconds at each rate;
 * `--capacity=100` is the capacity for an overload, which lasts for `--overload=60` seconds.
 */
import { checkOut, THIS_CHECKOUT } from './checkout.ts';
import { flag, say, textFlag } from './report.ts';
import { compareCapacity } from './requests-capacity.ts';
import { compareCpu, measureKinds } from './requests-cpu.ts';
import { type Floor, startFloor } from './requests-floor.ts';
import { compareGrowth } from './requests-growth.ts';
import { MIX } from './requests-mix.ts';
import { measureOverload } from './requests-overload.ts';
import { type Side, startSide } from './requests-side.ts';
import { compareStarts } from './start-times.ts';

export async function run(): Promise<void> {
  const commit = textFlag('against');
  const checkouts = [THIS_CHECKOUT, ...(commit === undefined ? [] : [checkOut(commit)])];
  const sides: Side[] = [];
  let floor: Floor | undefined;
  try {
    if (textFlag('part') === 'start') return await compareStarts(checkouts);
    for (const checkout of checkouts) sides.push(await startSide(checkout));
    const [ours, theirs] = sides as [Side, Side | undefined];
    floor = await startFloor(ours.service);
    const shares = Object.entries(MIX).map(([kind, share]) => `${kind} ${share}`);
    say(`  shares of the mixed load, in a hundred: ${shares.join(', ')}`);
    const part = textFlag('part');
    if (theirs === undefined && part === undefined) return await measureKinds(ours, floor);
    if (part === undefined || part === 'cpu') await compareCpu(ours, theirs ?? ours, floor);
    if (part === undefined || part === 'growth') await compareGrowth(sides);
    if (part === undefined || part === 'capacity' || part === 'overload') {
      const given = flag('capacity', 0);
      const capacity = part === 'overload' && given > 0 ? given : await compareCapacity(ours, theirs, floor);
      if (part !== 'capacity') await measureOverload(ours, capacity);
    }
  } finally {
    floor?.stop();
    for (const { service } of sides) await service.stop();
    for (const { remove } of checkouts) remove();
  }
}
