/**
 * Removes graphile-worker's console traces, because its logger reports each of them with a level and a format. If a connection fails during
 * shutdown, a hundred such lines would hide the one that explains why the service ends.
 */
export function silenceQueueTraces(console: Pick<Console, 'trace'> = globalThis.console): void {
  const trace = console.trace.bind(console);
  console.trace = (...parts) => {
    if (!/[\\/]graphile-worker[\\/]/.test(new Error().stack ?? '')) trace(...parts);
  };
}
