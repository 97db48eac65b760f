/** docs/integrations: the events that the page of a provider names are those that this service uses. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listCapable } from '../../integrations/find-capability.ts';
import { PROVIDER_DOUBLES } from '../support/providers/doubles.ts';

describe('docs/integrations: webhooks', () => {
  for (const [name, { parseWebhook }] of Object.entries(listCapable('account'))) {
    const page = readFileSync(join(import.meta.dirname, `../../docs/integrations/${name}.md`), 'utf8');
    const section = page.split(/^## /m).find((part) => part.startsWith('Webhooks'))!;
    const double = PROVIDER_DOUBLES[name]!();
    const parse = (event: string) =>
      parseWebhook!({ headers: {}, body: Buffer.from(JSON.stringify(double.buildWebhook(event))) })[0]!;

    it(`${name}: each event that is named has an effect`, () => {
      const named = double.listNamedEvents?.(section) ?? listNamed(section);
      expect(named).to.have.length.above(1);
      for (const event of named) expect(parse(event).subjects, event).to.not.deep.equal([]);
    });

    it(`${name}: others have none, and are not named`, () => {
      for (const event of double.unused_events) {
        expect(parse(event).subjects, event).to.deep.equal([]);
        expect(section).to.not.include(`\`${event}\``);
      }
    });
  }
});

/** In the first column of the table. A name that begins with a dot has the record of the name before it, and `*` is any word. */
function listNamed(section: string): string[] {
  const cells = [...section.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = '']) => cell);
  return cells.flatMap((cell) => {
    let record = '';
    return [...cell.matchAll(/`([\w.*]+)`/g)].map(([, text = '']) => {
      const event = text.startsWith('.') ? `${record}${text}` : text.replace('*', 'created');
      record = event.slice(0, event.lastIndexOf('.'));
      return event;
    });
  });
}
