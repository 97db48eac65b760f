/** Version and roles of the process, for the metrics of every process. */
import { Gauge } from 'prom-client';
import { VERSION } from './version.ts';

const buildInfo = new Gauge({
  name: 'farthing_build_info',
  help: 'Always 1; the labels say which version runs, and on which Node.',
  labelNames: ['version', 'node'],
});
buildInfo.set({ version: VERSION, node: process.versions.node }, 1);

/** Role of a process. Each role needs at least one process; the process of `npm start` has all of them. */
export type ProcessRole = 'api' | 'pipeline' | 'scheduler';

const roles = new Gauge({
  name: 'farthing_process_role',
  help: 'Always 1; the label says what the process is, which may be several things.',
  labelNames: ['role'],
});

export function publishRoles(...all: ProcessRole[]): void {
  for (const role of all) roles.set({ role }, 1);
}
