import { stopTestStores } from './stores.ts';

/** Mocha calls this after all files, and after Ctrl-C too. */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(60_000);
    await stopTestStores();
  },
};
