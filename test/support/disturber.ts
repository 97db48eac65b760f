/**
 * A child process that puts load on the service in one way after another. It is a separate process, so that the load
 * does not slow the measuring process.
 */
import { type Caller, CORRECTIONS, disturb, WAYS } from './neighbours.ts';

type Told = { readonly caller: Caller; readonly way: string } | 'stop';

let work = new AbortController();
process.on('message', (told: Told) => {
  if (told === 'stop') {
    work.abort();
    return;
  }
  const way = [...WAYS, CORRECTIONS].find(({ name }) => name === told.way)!;
  work = new AbortController();
  const { signal } = work;
  void (async () => {
    await way.prepare?.(told.caller);
    process.send!({ begun: true });
    process.send!({ statuses: await disturb(told.caller, way, signal) });
  })();
});
process.on('disconnect', () => process.exit());
