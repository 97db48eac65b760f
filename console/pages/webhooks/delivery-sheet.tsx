/** A delivery: each attempt with the answer of the receiver, the body that was sent, and the way to send it again. */
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef } from 'react';
import { api } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { CodeBlock, CopyId } from '../../components/copy.tsx';
import { useDeed } from '../../components/form.tsx';
import { Facts } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { Knot, Thread } from '../../components/thread.tsx';
import { Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { DeliveryChip } from './endpoint-chip.tsx';
import { WEBHOOK_TEXTS } from './texts.ts';
import { formatAnswer, type WebhookDeliveryDetail } from './webhook-records.ts';
import styles from './webhooks.module.css';

const POLL_MS = 2_000;

type DeliverySheetProps = { id: string; blocked: string | null; onClose: () => void };

export function DeliverySheet({ id, blocked, onClose }: DeliverySheetProps): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const queries = useQueryClient();
  const params = { path: { id } };
  // A delivery that is on its way is read until it has an answer.
  const first = useGet('/webhooks/deliveries/{id}', params);
  const isOnItsWay = first.data?.delivery_status === 'pending' && isDueSoon(first.data);
  const delivery = useGet('/webhooks/deliveries/{id}', params, { refetchInterval: isOnItsWay ? POLL_MS : false });
  const attempt_count = delivery.data?.attempt_count;
  const shown = useRef(attempt_count);
  useEffect(() => {
    // The list and the endpoint change with each attempt, too.
    if (shown.current !== undefined && attempt_count !== shown.current)
      void invalidate(queries, '/webhooks/deliveries', '/webhooks/endpoints');
    shown.current = attempt_count;
  }, [attempt_count, queries]);
  const resend = useDeed(
    (system_event_id: string) => api.POST('/webhooks/{id}/retry', { params: { path: { id: system_event_id } } }),
    () => invalidate(queries, '/webhooks'),
  );
  const { data } = delivery;
  return (
    <SideSheet
      title={data ? <span className="mono">{data.event_name}</span> : texts.delivery}
      subtitle={<CopyId id={id} />}
      onClose={onClose}
      footer={
        data && (
          <Button
            blocked={blocked ?? (data.delivery_status === 'delivered' ? texts.wasAccepted : null)}
            isBusy={resend.isPending}
            onClick={() => resend.mutate(data.system_event_id)}
          >
            {texts.sendAgain}
          </Button>
        )
      }
    >
      <Loaded query={delivery}>
        {(loaded) => (
          <>
            <Facts
              facts={[
                { label: texts.status, value: <DeliveryChip delivery={loaded} /> },
                { label: texts.aboutRecord, value: <CopyId id={loaded.entity_id} /> },
                { label: texts.eventId, value: <CopyId id={loaded.system_event_id} /> },
                ...(loaded.next_attempt_at === null
                  ? []
                  : [{ label: texts.nextAttempt, value: <Moment at={loaded.next_attempt_at} /> }]),
              ]}
            />
            {resend.error && (
              <p role="alert" className={styles.error}>
                {showApiText(resend.error.message)}
              </p>
            )}
            <h3 className={styles.part}>{texts.attempts}</h3>
            <Attempts delivery={loaded} />
            <h3 className={styles.part}>{texts.body}</h3>
            <CodeBlock label={texts.body} code={JSON.stringify(loaded.body, null, 2)} />
            <RecordTools record={loaded} path={`/webhooks/deliveries/${id}`} />
          </>
        )}
      </Loaded>
    </SideSheet>
  );
}

function Attempts({ delivery: { attempts, failure_reason } }: { delivery: WebhookDeliveryDetail }): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  if (attempts.length === 0) return <p className="muted">{failure_reason ?? texts.noAttempt}</p>;
  return (
    <Thread>
      {attempts.map(({ id, attempted_at, http_status, duration_ms, error, response_body }) => (
        <Knot
          key={id}
          isFilled={http_status !== null && http_status < 300}
          title={<Moment at={attempted_at} />}
          value={
            <>
              <span className="mono">{http_status ?? texts.noAnswer}</span>
              <span className="label"> {texts.took(duration_ms)}</span>
            </>
          }
        >
          {error && <p>{error}</p>}
          {response_body ? (
            <CodeBlock label={texts.answer} code={formatAnswer(response_body)} />
          ) : (
            http_status !== null && <p>{texts.emptyAnswer}</p>
          )}
        </Knot>
      ))}
    </Thread>
  );
}

/** Whether the next attempt is near enough to wait for it. */
function isDueSoon({ next_attempt_at, attempt_count }: WebhookDeliveryDetail): boolean {
  return next_attempt_at === null || attempt_count === 0 || Date.parse(next_attempt_at) < Date.now() + POLL_MS;
}
