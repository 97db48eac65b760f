import type { ReactNode } from 'react';
import { Button } from '../../components/button.tsx';
import { type Fact, Facts, Sheet } from '../../components/page.tsx';
import { Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { WEBHOOK_TEXTS } from './texts.ts';
import type { EndpointRecord } from './webhook-records.ts';
import styles from './webhooks.module.css';

type EndpointFactsProps = {
  endpoint: EndpointRecord;
  blocked: string | null;
  onRotate: () => void;
  onDisable: () => void;
  onDelete: () => void;
};

/** Address, events and secret of an endpoint, since when it fails, and the deeds that end it. */
export function EndpointFacts({ endpoint, blocked, onRotate, onDisable, onDelete }: EndpointFactsProps): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const { url, event_names, secret_hint, previous_secret_expires_at, failing_since, disabled_at, disabled_reason } =
    endpoint;
  const facts: Fact[] = [
    { label: texts.url, value: <span className="mono">{url}</span> },
    {
      label: texts.events,
      value:
        event_names.length === 0 ? (
          texts.allEvents
        ) : (
          <span className={styles.chosen}>
            {event_names.map((name) => (
              <span key={name} className="mono">
                {name}
              </span>
            ))}
          </span>
        ),
    },
    { label: texts.secret, value: <span className="mono">{secret_hint}</span> },
    ...(previous_secret_expires_at === null
      ? []
      : [{ label: texts.oldSecretUntil, value: <Moment at={previous_secret_expires_at} /> }]),
    ...(failing_since === null ? [] : [{ label: texts.failingSince, value: <Moment at={failing_since} /> }]),
    ...(disabled_at === null
      ? []
      : [
          { label: texts.disabledSince, value: <Moment at={disabled_at} /> },
          { label: texts.reason, value: disabled_reason },
        ]),
  ];
  return (
    <Sheet>
      <Facts facts={facts} />
      <div className={styles.deeds}>
        <Button blocked={blocked} onClick={onRotate}>
          {texts.rotate}
        </Button>
        {endpoint.endpoint_status === 'enabled' && (
          <Button blocked={blocked} onClick={onDisable}>
            {texts.disable}
          </Button>
        )}
        <Button isDangerous blocked={blocked} onClick={onDelete}>
          {texts.remove}
        </Button>
      </div>
    </Sheet>
  );
}
