/** The service on a directory of its own, with faults at the system calls of its engine: for all tests of a suite. */
import { join } from 'node:path';
import { temporaryDirectory } from '../support/service.ts';
import { SupervisedService } from './supervised.ts';
import { type SystemCallFaults, systemCallFaults } from './system-calls.ts';

export type Faulty = { readonly service: SupervisedService; readonly faults: SystemCallFaults; stop(): Promise<void> };

/** Ready; whenever it is started again the faults are taken away first. */
export async function startWithFaults(settings: Record<string, string>): Promise<Faulty> {
  const directory = temporaryDirectory();
  const faults = await systemCallFaults();
  const all = { BOOTSTRAP_API_KEY: 'sk_test_faults', ...settings, DATA_DIR: join(directory.path, 'data') };
  const service = new SupervisedService({ ...all, ...faults.intoEngine() }, () => faults.clear());
  await service.current();
  return {
    service,
    faults,
    async stop() {
      await service.stop();
      faults.close();
      directory.remove();
    },
  };
}
