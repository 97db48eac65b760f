/** An endpoint with its deliveries: each opens a sheet with its body and the answers of the receiver. */
import { Tabs } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { usePages } from '../../client/pages.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyId } from '../../components/copy.tsx';
import { useDeed } from '../../components/form.tsx';
import { PageHead } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Empty, Loaded, LoadedRows } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { DeliverySheet } from './delivery-sheet.tsx';
import { DeliveryTable } from './delivery-table.tsx';
import { EndpointChip } from './endpoint-chip.tsx';
import { EndpointFacts } from './endpoint-facts.tsx';
import { EndpointForm } from './endpoint-form.tsx';
import { RotateSecretSheet } from './rotate-secret-sheet.tsx';
import { DELIVERY_VIEWS, type WebhookSearch } from './routes.ts';
import { WEBHOOK_TEXTS } from './texts.ts';
import type { EndpointRecord } from './webhook-records.ts';
import styles from './webhooks.module.css';

const FROM = '/env/$environment_id/webhooks/$endpoint_id';
type EndpointDeed = 'disable' | 'delete';

export function WebhookPage(): ReactNode {
  const { endpoint_id } = useParams({ from: FROM });
  const endpoint = useGet('/webhooks/endpoints/{id}', { path: { id: endpoint_id } });
  return (
    <Loaded query={endpoint} record_id={endpoint_id}>
      {(loaded) => <Endpoint endpoint={loaded} />}
    </Loaded>
  );
}

function Endpoint({ endpoint }: { endpoint: EndpointRecord }): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const { sheet, delivery } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const queries = useQueryClient();
  const [deed, setDeed] = useState<EndpointDeed | null>(null);
  const { id, url, description, endpoint_status } = endpoint;
  const isOn = endpoint_status === 'enabled';
  const open = (search: Pick<WebhookSearch, 'sheet' | 'delivery'> = {}) =>
    void navigate({ search: (old) => ({ zone: old.zone, view: old.view, ...search }) });
  const change = async (next: 'enabled' | 'disabled') => {
    await api.PUT('/webhooks/endpoints/{id}', { params: { path: { id } }, body: { endpoint_status: next } });
    await invalidate(queries, '/webhooks');
  };
  const enable = useDeed(() => change('enabled'));
  const test = useDeed(
    () => readData(api.POST('/webhooks/endpoints/{id}/test', { params: { path: { id } } })),
    async (sent) => {
      await invalidate(queries, '/webhooks/deliveries');
      open({ sheet: 'delivery', delivery: sent.id });
    },
  );
  const blocked = useMayNot('webhook:write');
  const failed = enable.error ?? test.error;
  return (
    <WithSheet
      sheet={
        sheet === 'edit' ? (
          <EndpointForm endpoint={endpoint} onClose={() => open()} />
        ) : sheet === 'rotate' ? (
          <RotateSecretSheet endpoint={endpoint} onClose={() => open()} />
        ) : sheet === 'delivery' && delivery !== undefined ? (
          <DeliverySheet key={delivery} id={delivery} blocked={blocked} onClose={() => open()} />
        ) : sheet === 'record' ? (
          <SideSheet title={texts.record} subtitle={<CopyId id={id} />} onClose={() => open()}>
            <RecordTools record={endpoint} path={`/webhooks/endpoints/${id}`} entity_id={id} />
          </SideSheet>
        ) : null
      }
    >
      <PageHead
        title={new URL(url).host}
        status={<EndpointChip endpoint={endpoint} />}
        subtitle={description ? <bdi>{description}</bdi> : undefined}
        actions={
          <>
            <Button onClick={() => open({ sheet: 'record' })}>{texts.record}</Button>
            <Button blocked={blocked} onClick={() => open({ sheet: 'edit' })}>
              {texts.edit}
            </Button>
            {isOn ? (
              <Button isPrimary blocked={blocked} isBusy={test.isPending} onClick={() => test.mutate(undefined)}>
                {texts.test}
              </Button>
            ) : (
              <Button isPrimary blocked={blocked} isBusy={enable.isPending} onClick={() => enable.mutate(undefined)}>
                {texts.enable}
              </Button>
            )}
          </>
        }
      />
      {failed && (
        <p role="alert" className={styles.error}>
          {showApiText(failed.message)}
        </p>
      )}
      <EndpointFacts
        endpoint={endpoint}
        blocked={blocked}
        onRotate={() => open({ sheet: 'rotate' })}
        onDisable={() => setDeed('disable')}
        onDelete={() => setDeed('delete')}
      />
      <Deliveries
        endpoint_id={id}
        openId={delivery ?? null}
        onOpen={(next) => open({ sheet: 'delivery', delivery: next })}
      />
      {deed === 'disable' && (
        <Confirm
          needs="webhook:write"
          title={texts.disableTitle}
          action={texts.disableNow}
          onConfirm={() => change('disabled')}
          onClose={() => setDeed(null)}
        >
          <p>{texts.disableHint}</p>
        </Confirm>
      )}
      {deed === 'delete' && (
        <Confirm
          needs="webhook:write"
          title={texts.deleteTitle}
          action={texts.deleteNow}
          typed={new URL(url).host}
          isDangerous
          onClose={() => setDeed(null)}
          onConfirm={async () => {
            await api.DELETE('/webhooks/endpoints/{id}', { params: { path: { id } } });
            await invalidate(queries, '/webhooks');
            await navigate({ to: '/env/$environment_id/webhooks' });
          }}
        >
          <p>{texts.deleteHint}</p>
        </Confirm>
      )}
    </WithSheet>
  );
}

function Deliveries({
  endpoint_id,
  openId,
  onOpen,
}: {
  endpoint_id: string;
  openId: string | null;
  onOpen: (id: string) => void;
}): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const { view } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const deliveries = usePages('/webhooks/deliveries', {
    query: { endpoint_ids: endpoint_id, ...(view === undefined ? {} : { delivery_status: view }) } as never,
  });
  return (
    <section className={styles.deliveries} aria-label={texts.deliveries}>
      <div className={styles.deliveriesHead}>
        <h2>{texts.deliveries}</h2>
        <Button onClick={deliveries.refetch}>{texts.refresh}</Button>
      </div>
      <Tabs
        value={view ?? 'all'}
        color="var(--copper)"
        mb="md"
        onChange={(next) =>
          void navigate({
            search: (old) => ({ zone: old.zone, view: DELIVERY_VIEWS.find((each) => each === next) }),
          })
        }
      >
        <Tabs.List>
          <Tabs.Tab value="all">{texts.all}</Tabs.Tab>
          {DELIVERY_VIEWS.map((each) => (
            <Tabs.Tab key={each} value={each}>
              {texts[each]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={view ?? 'all'} pt="sm">
          <LoadedRows list={deliveries}>
            {() =>
              deliveries.rows.length === 0 ? (
                <Empty title={view === undefined ? texts.noDeliveries : texts.noneOfView}>
                  {view === undefined && <p>{texts.noDeliveriesHint}</p>}
                </Empty>
              ) : (
                <DeliveryTable deliveries={deliveries} openId={openId} onOpen={onOpen} />
              )
            }
          </LoadedRows>
        </Tabs.Panel>
      </Tabs>
    </section>
  );
}
