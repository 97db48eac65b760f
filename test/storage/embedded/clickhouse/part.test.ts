/** The child processes that the embedded stores are. */
import { expect } from 'chai';
import { startChild } from '../../../../storage/embedded/clickhouse/part.ts';

describe('a server that cannot be started', () => {
  const child = () =>
    startChild({ name: 'Nothing', command: '/there/is/no/such/program', args: [], env: {}, log: () => {} });

  it('has no process id: there is none that a watchdog could end', async () => {
    const part = child();
    await new Promise<void>((resolve) => part.onExit(() => resolve()));
    expect(() => part.pid).to.throw('Nothing could not be started');
  });

  it('says so to whoever waits for it', async () => {
    const failure = await child()
      .waitForLine(/ready/, 10_000)
      .then(
        () => undefined,
        (error: Error) => error,
      );
    expect(failure?.message).to.contain('could not be started');
  });
});
