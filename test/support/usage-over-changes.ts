/** Performs random changes of prices inside a period, and reads the usage of each subscription in every way (usage-doors.ts). */
import { type Changed, JANUARY, makeMeters, modelAmounts, planDeeds } from './changed-usage.ts';
import type { Exports } from './exported.ts';
import { type Asked, type Doors, overDoors, runningDoors } from './usage-doors.ts';
import { startWorld, type World } from './world.ts';

/** By subscription, and by way (door) and time of reading: a text for each line, and the total. */
export type UsageByDoor = Map<string, Record<string, string[]>>;

type MakeDoors = (world: World, asked: Asked) => Doors;

/**
 * Performs all changes, and reads usage during the period, for the draft and for the final invoice, each time in several
 * ways (usage-doors.ts).
 */
export async function liveThrough(all: readonly Changed[]): Promise<UsageByDoor> {
  const world = await startWorld({ now: '2025-12-01T00:00:00Z' });
  const stated: UsageByDoor = new Map(all.map(({ name }) => [name, {}]));
  const wallets = new Map<string, string>();
  await makeMeters(world);
  for (const { name } of all) await world.customer(name);
  await world.send(all.flatMap(({ events }) => events));
  await world.waitForPipeline();
  const deeds = all.flatMap((changed) => planDeeds(world, changed));
  const ends = all.filter(({ kind }) => kind === 'ending');
  const beforeEnd = () => ask(world, { of: ends, when: 'before its end', doors: runningDoors, stated, wallets });
  deeds.push({ at: '2026-01-23T00:00:00Z', run: beforeEnd });
  // The periods of December end when January begins; no other period ends before February.
  for (const { at, run } of deeds.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))) {
    if (at === JANUARY.start && world.now.getTime() < Date.parse(at)) await world.on(at);
    world.at(at);
    await run();
  }
  const running = all.filter(({ end }) => end === null);
  await world.waitForPipeline();
  world.at('2026-01-26T00:00:00Z');
  await ask(world, { of: running, when: 'on the 26th', doors: runningDoors, stated, wallets });
  world.at('2026-01-30T12:00:00Z');
  const unchanged: MakeDoors = (...asked) => {
    const { preview, balance } = runningDoors(...asked);
    return { preview: preview!, balance: balance! };
  };
  await ask(world, { of: running, when: 'on the 30th', doors: unchanged, stated, wallets });
  await world.on('2026-02-01');
  const drafts: MakeDoors = (...asked) => {
    const { proof: _final, ...doors } = overDoors(...asked, 'DRAFT');
    return doors;
  };
  await ask(world, { of: all, when: 'as a draft', doors: drafts, stated, wallets });
  await world.finalize();
  const last: MakeDoors = (...asked) => {
    const { FINALIZED, proof, 'export by day': exported } = overDoors(...asked, 'FINALIZED');
    return { FINALIZED: FINALIZED!, proof: proof!, 'export by day': exported! };
  };
  await ask(world, { of: all, when: 'when it is final', doors: last, stated, wallets });
  await world.stop();
  return stated;
}

type Asking = {
  of: readonly Changed[];
  when: string;
  doors: MakeDoors;
  stated: UsageByDoor;
  wallets: Map<string, string>;
};

/** A door that fails gives its error in place of an amount. Nothing changes meanwhile, so the subscriptions share the exports. */
async function ask(world: World, { of, when, doors, stated, wallets }: Asking): Promise<void> {
  const exports: Exports = new Map();
  for (const { name, measure } of of) {
    const asked = {
      customer: name,
      meter_id: world.id(`meter ${measure.name}`),
      meter_name: measure.name,
      exports,
      wallets,
    };
    const answers = Object.entries(doors(world, asked)).map(async ([door, answer]) => {
      const found = await answer().catch((error: Error) => [error.message]);
      stated.get(name)![`${door}, ${when}`] = found;
    });
    await Promise.all(answers);
  }
}

/** Amounts of the model for each entry of `actual`: lines and total if the entry has lines, else only the total. */
export function expectedAt(actual: Readonly<Record<string, string[]>>, changed: Changed): Record<string, string[]> {
  const { lines, total } = modelAmounts(changed);
  return Object.fromEntries(
    Object.entries(actual).map(([door, found]) => [
      door,
      found.length === 1 ? [`= ${total}`] : [...lines, `= ${total}`],
    ]),
  );
}
