/**
 * graphile-worker traces on the console what it then tells its logger, which has a level and a shape: where it was cut off while it was
 * told to stop, a hundred lines would stand around the one that says why the service ends.
 */
export function silenceQueueTraces(console: Pick<Console, 'trace'> = globalThis.console): void {
  const trace = console.trace.bind(console);
  console.trace = (...parts) => {
    if (!/[\\/]graphile-worker[\\/]/.test(new Error().stack ?? '')) trace(...parts);
  };
}
