import { runInThisContext } from 'node:vm';
import { expect } from 'chai';
import { silenceQueueTraces } from '../../process/quiet-queue.ts';

describe('traces on the console', () => {
  it('are heard, but for those of the job queue, which its logger tells', () => {
    const heard: unknown[][] = [];
    const console = { trace: (...said: unknown[]) => void heard.push(said) };
    silenceQueueTraces(console);
    const from = (filename: string) =>
      runInThisContext('(console, said) => console.trace(said)', { filename }) as (...given: unknown[]) => void;
    from('/srv/farthing/node_modules/graphile-worker/dist/main.js')(console, 'of the queue');
    from('/srv/farthing/node_modules/another/main.js')(console, 'of another');
    expect(heard).to.deep.equal([['of another']]);
  });
});
