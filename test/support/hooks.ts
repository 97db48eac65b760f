import { atEnd } from './at-end.ts';

/**
 * Mocha calls this after all files, and after Ctrl-C. In parallel mode (`npm test`) each worker calls it after each of
 * its files; there the stores serve all files and end with the worker.
 */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    if (process.env.MOCHA_WORKER_ID !== undefined) return;
    this.timeout(60_000);
    for (const stop of atEnd.splice(0)) await stop();
  },
};
