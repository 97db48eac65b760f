/** A key, one command for each language, and the events that arrive: a wrong one is as visible as a right one. */
import { Tabs } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { API_BASE, api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { CodeBlock } from '../../components/copy.tsx';
import { useDeed } from '../../components/form.tsx';
import { useTexts } from '../../texts/texts.ts';
import { ArrivedEvents } from './arrived-events.tsx';
import {
  buildSampleEvent,
  buildTraffic,
  COMMAND_LANGUAGES,
  COMMANDS,
  type CommandLanguage,
  misspell,
  type SampleEvent,
} from './commands.ts';
import styles from './first-bill.module.css';
import { measureArrival } from './progress.ts';
import { FROM } from './routes.ts';
import { Step, type StepProps } from './step.tsx';
import { TEXTS } from './texts.ts';
import { useArrivals } from './use-first-bill.ts';

const TRAFFIC_EVENTS = 300;
const DEFAULT_CUSTOMER = 'northwind';
const LANGUAGE_NAMES = { curl: 'curl', typescript: 'TypeScript', python: 'Python', opentelemetry: 'OpenTelemetry' };

export function SendStep({ bill, ...step }: StepProps): ReactNode {
  const texts = useTexts(TEXTS);
  const arrivals = useArrivals(bill);
  const newest = bill.events.find(({ id }) => arrivals.get(id));
  const seconds = newest && measureArrival(newest.received_at, arrivals.get(newest.id)!);
  const sample = buildSampleEvent(bill.meters, bill.events[0]?.external_customer_id ?? DEFAULT_CUSTOMER);
  const value = newest ? (
    <Chip tone="ok">{seconds ? texts.arrivedAfter(seconds) : texts.arrived}</Chip>
  ) : step.isDone ? undefined : step.isOpen ? (
    texts.waiting
  ) : null;
  return (
    <Step
      {...step}
      title={texts.send}
      value={value && <span role="status">{value}</span>}
      summary={step.isOpen ? (sample ? texts.sendHint : texts.firstSell) : undefined}
      after={<ArrivedEvents events={bill.events} isNew={(id) => Boolean(arrivals.get(id))} />}
    >
      {sample && <Commands sample={sample} isDone={step.isDone} />}
    </Step>
  );
}

function Commands({ sample, isDone }: { sample: SampleEvent; isDone: boolean }): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const { with: language = 'curl' } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const [key, setKey] = useState<string | null>(null);
  const makeKey = useDeed(
    () =>
      readData(
        api.POST('/secrets/api/keys', { body: { name: `Events: ${sample.event_name}`, type: 'publishable_key' } }),
      ),
    ({ api_key }) => setKey(api_key),
  );
  const send = useDeed(
    (event_name: string) => readData(api.POST('/events', { body: { ...sample, event_name } })),
    () => invalidate(queries, '/events'),
  );
  const sendTraffic = useDeed(
    () => readData(api.POST('/events/bulk', { body: { events: buildTraffic(sample, TRAFFIC_EVENTS, Date.now()) } })),
    () => invalidate(queries, '/events'),
  );
  const mayNotSend = useMayNot('event:write');
  const mayNotMakeKey = useMayNot('secret:write');
  const error = makeKey.error ?? send.error ?? sendTraffic.error;
  return (
    <>
      <Tabs
        className={styles.commands}
        value={language}
        keepMounted={false}
        color="var(--copper)"
        onChange={(value) =>
          void navigate({
            search: (old) => ({ ...old, with: value as CommandLanguage }),
            replace: true,
            resetScroll: false,
          })
        }
      >
        <Tabs.List aria-label={texts.languages}>
          {COMMAND_LANGUAGES.map((each) => (
            <Tabs.Tab key={each} value={each}>
              {LANGUAGE_NAMES[each]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {COMMAND_LANGUAGES.map((each) => (
          <Tabs.Panel key={each} value={each}>
            <CodeBlock
              label={texts.command(LANGUAGE_NAMES[each])}
              code={COMMANDS[each]({ url: `${location.origin}${API_BASE}`, key, event: sample })}
            />
          </Tabs.Panel>
        ))}
      </Tabs>
      <p className="label">{key === null ? texts.needsKey : texts.keyOnce}</p>
      {error && (
        <p role="alert" className={styles.error}>
          {showApiText(error.message)}
        </p>
      )}
      <div className={styles.actions}>
        {key === null && (
          <Button
            isPrimary={!isDone}
            isBusy={makeKey.isPending}
            blocked={mayNotMakeKey}
            onClick={() => makeKey.mutate(undefined)}
          >
            {texts.makeKey}
          </Button>
        )}
        <Button blocked={mayNotSend} isBusy={send.isPending} onClick={() => send.mutate(sample.event_name)}>
          {texts.sendForMe}
        </Button>
        <Button blocked={mayNotSend} isBusy={send.isPending} onClick={() => send.mutate(misspell(sample.event_name))}>
          {texts.sendWrong}
        </Button>
        <Button blocked={mayNotSend} isBusy={sendTraffic.isPending} onClick={() => sendTraffic.mutate(undefined)}>
          {texts.sendTraffic}
        </Button>
      </div>
    </>
  );
}
