/** docs/integrations/README.md, "Capabilities": the table equals the capabilities that the code declares. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listCapable } from '../../integrations/find-capability.ts';
import { EXCHANGES } from '../../integrations/provider.ts';

describe('docs/integrations/README.md', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/integrations/README.md'), 'utf8');

  it('has the capabilities that the providers declare', () => {
    const toRow = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
    const table = [
      toRow(['provider', ...EXCHANGES]),
      `|${'---|'.repeat(EXCHANGES.length + 1)}`,
      ...Object.entries(listCapable('account')).map(([name, { exchanges }]) =>
        toRow([name, ...EXCHANGES.map((exchange) => (exchanges.includes(exchange) ? 'yes' : 'no'))]),
      ),
    ].join('\n');
    expect(text).to.include(`\n\n${table}\n\n`);
  });

  it('explains each of them', () => {
    const section = text.split(/^## /m).find((part) => part.startsWith('Capabilities'))!;
    for (const exchange of EXCHANGES) expect(section).to.include(`\`${exchange}\``);
  });
});
