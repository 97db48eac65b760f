/** Which version runs, in the metrics of every process. */
import { Gauge } from 'prom-client';
import { VERSION } from './version.ts';

const buildInfo = new Gauge({
  name: 'farthing_build_info',
  help: 'Always 1; the labels say which version runs, and on which Node.',
  labelNames: ['version', 'node'],
});
buildInfo.set({ version: VERSION, node: process.versions.node }, 1);
