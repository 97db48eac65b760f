/** The one world of the examples that go through the real interface; it is made with the first of them. */
import { startWorld, type World } from '../support/world.ts';

const BEGINNING = '2026-03-15T12:00:00Z';
let started: Promise<World> | undefined;
let count = 0;

/** As it was at its beginning, whatever the clock of the example before it showed. */
export async function exampleWorld(): Promise<World> {
  const world = await (started ??= startWorld({ now: BEGINNING }));
  world.at(BEGINNING);
  return world;
}

/** A name that no example before had. */
export const freshName = (): string => `example ${++count}`;

/** Stops the world after the last example, before the stores of the run are stopped. */
export async function endWorld(): Promise<void> {
  const ending = started;
  started = undefined;
  await (await ending)?.stop();
}
