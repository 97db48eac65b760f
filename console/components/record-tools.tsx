/** Shows the JSON of a record, the call that reads it, and its history. */
import { Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatCurl } from '../client/client.ts';
import { formatExact } from '../client/exact-json.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { CodeBlock } from './copy.tsx';
import { History } from './history.tsx';

/** `path` is that of the operation below /v1, such as `/customers/cust_…`; `entity_id` adds the history of the record. */
export function RecordTools({
  record,
  path,
  entity_id,
}: {
  record: unknown;
  path: string;
  entity_id?: string;
}): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <Tabs defaultValue="json" keepMounted={false} color="var(--copper)">
      <Tabs.List>
        <Tabs.Tab value="json">JSON</Tabs.Tab>
        <Tabs.Tab value="curl">{texts.asCurl}</Tabs.Tab>
        {entity_id !== undefined && <Tabs.Tab value="history">{texts.history}</Tabs.Tab>}
      </Tabs.List>
      <Tabs.Panel value="json" pt="sm">
        <CodeBlock label="JSON" code={formatExact(record, 2)} />
      </Tabs.Panel>
      <Tabs.Panel value="curl" pt="sm">
        <CodeBlock label={texts.asCurl} code={formatCurl('GET', path)} />
      </Tabs.Panel>
      {entity_id !== undefined && (
        <Tabs.Panel value="history" pt="sm">
          <History entity_id={entity_id} />
        </Tabs.Panel>
      )}
    </Tabs>
  );
}

const TEXTS = defineTexts(
  { asCurl: 'as curl', history: 'History' },
  { de: { asCurl: 'als curl', history: 'Verlauf' } },
);
