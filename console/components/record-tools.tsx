/** What each record shows on request: its JSON, and the call that reads it. */
import { Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatCurl } from '../client/client.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { CodeBlock } from './copy.tsx';

/** `path` is that of the operation below /v1, such as `/customers/cust_…`. */
export function RecordTools({
  record,
  path,
  history,
}: {
  record: unknown;
  path: string;
  history?: ReactNode;
}): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <Tabs defaultValue="json" keepMounted={false} color="var(--copper)">
      <Tabs.List>
        <Tabs.Tab value="json">JSON</Tabs.Tab>
        <Tabs.Tab value="curl">{texts.asCurl}</Tabs.Tab>
        {history !== undefined && <Tabs.Tab value="history">{texts.history}</Tabs.Tab>}
      </Tabs.List>
      <Tabs.Panel value="json" pt="sm">
        <CodeBlock label="JSON" code={JSON.stringify(record, null, 2)} />
      </Tabs.Panel>
      <Tabs.Panel value="curl" pt="sm">
        <CodeBlock label={texts.asCurl} code={formatCurl('GET', path)} />
      </Tabs.Panel>
      {history !== undefined && (
        <Tabs.Panel value="history" pt="sm">
          {history}
        </Tabs.Panel>
      )}
    </Tabs>
  );
}

const TEXTS = defineTexts(
  { asCurl: 'as curl', history: 'History' },
  { de: { asCurl: 'als curl', history: 'Verlauf' } },
);
