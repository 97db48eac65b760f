/** Start of one or two checkouts on an empty data directory, until the service is ready. Their dependencies are installed. */
import type { Checkout } from './checkout.ts';
import { startOutside } from './outside-service.ts';
import { claim, fixed, flag, median, say } from './report.ts';

const MUST = 1.1;
const SECOND_MS = 1_000;

type Start = { readonly took: number; readonly cpu: number };

/** Measures the starts in interleaved pairs. The CPU is that of the whole process tree; the time depends on other work of the machine. */
export async function compareStarts(checkouts: readonly Checkout[]): Promise<void> {
  const starts = new Map<Checkout, Start[]>(checkouts.map((checkout) => [checkout, []]));
  const pairs = flag('pairs', 5);
  for (let pair = 0; pair < pairs; pair++)
    for (const checkout of pair % 2 === 0 ? checkouts : checkouts.toReversed())
      starts.get(checkout)!.push(await measureStart(checkout));
  const [ours, theirs] = checkouts.map((checkout) => summarize(starts.get(checkout)!));
  say(`  start: ${fixed(ours!.took, 1)} s, ${fixed(ours!.cpu, 1)} s of CPU`);
  if (theirs === undefined) return;
  for (const measure of ['took', 'cpu'] as const) {
    const ratio = ours![measure] / theirs[measure];
    const measured = `${fixed(ours![measure], 1)} ÷ ${fixed(theirs[measure], 1)} s = ${fixed(ratio, 2)}`;
    claim(measure === 'cpu' ? 'start, CPU' : 'start, time', measured, `${MUST}`, ratio <= MUST);
  }
}

async function measureStart({ root }: Checkout): Promise<Start> {
  const at = performance.now();
  const service = await startOutside(root);
  const took = (performance.now() - at) / SECOND_MS;
  const cpu = service.cpu().total;
  await service.stop();
  return { took, cpu };
}

function summarize(starts: readonly Start[]): Start {
  return { took: median(starts.map(({ took }) => took)), cpu: median(starts.map(({ cpu }) => cpu)) };
}
