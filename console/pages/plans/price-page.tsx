/** A stored price: its charge can be edited as a draft and published as a new version. */
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { can, useSession } from '../../client/session.ts';
import { Button, buttonClass } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyId } from '../../components/copy.tsx';
import { useDeed } from '../../components/form.tsx';
import { PageHead } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatInstant } from '../../figures/format.ts';
import { useZone } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { type StoredPrice, startRollOut } from './plan-queries.ts';
import { buildPriceChange, isChargeChanged, type PriceDraft, toDraft } from './price-draft.ts';
import { PriceEditor } from './price-editor.tsx';
import { PRICE_TEXTS } from './price-texts.ts';
import { PriceVersions } from './price-versions.tsx';
import { PublishDialog } from './publish-dialog.tsx';
import { useRunningCount } from './running-count.ts';

const FROM = '/env/$environment_id/plans/$plan_id/prices/$price_id';

export function PricePage(): ReactNode {
  const { price_id } = useParams({ from: FROM });
  const price = useGet('/prices/{id}', { path: { id: price_id } });
  return (
    <Loaded query={price} record_id={price_id} rows={8}>
      {(stored) => <StoredPriceEditor key={stored.id} price={stored} />}
    </Loaded>
  );
}

function StoredPriceEditor({ price }: { price: StoredPrice }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const { plan_id } = useParams({ from: FROM });
  const { sheet } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const queries = useQueryClient();
  const session = useSession();
  const language = useLanguage();
  const zone = useZone();
  const plan = useGet('/plans/{id}', { path: { id: plan_id } });
  const meter = useGet('/meters/{id}', { path: { id: price.meter_id ?? '' } }, { enabled: price.meter_id !== null });
  const runningCount = useRunningCount(plan_id);
  const [draft, setDraft] = useState<PriceDraft>(() => toDraft(price));
  const [dialog, setDialog] = useState<'publish' | 'end' | null>(null);
  const changes = buildPriceChange(draft, price);
  const isChanged = Object.keys(changes).length > 0;
  const name = price.display_name ?? texts.unnamed;
  const toPlan = () => navigate({ to: '/env/$environment_id/plans/$plan_id', search: (old) => ({ zone: old.zone }) });
  const openSheet = (next?: 'record') =>
    void navigate({ search: (old) => ({ ...old, sheet: next }), resetScroll: false });
  const publish = useDeed(async (isRolledOut: boolean) => {
    await readData(
      api.PUT('/prices/{id}', { params: { path: { id: price.id } }, body: buildPriceChange(draft, price) as never }),
    );
    if (isRolledOut) await startRollOut(queries, plan_id);
    await invalidate(queries, '/plans', '/prices');
    notifications.show({
      message: texts.published(draft.display_name || name),
      closeButtonProps: { 'aria-label': texts.close },
    });
    await toPlan();
  });
  const blocked = !can(session, 'price', 'write')
    ? texts.mayNotWrite
    : price.end_date !== null
      ? texts.endsAt(formatInstant(language, price.end_date, zone))
      : price.price_unit !== null
        ? texts.customUnit(price.price_unit)
        : null;
  return (
    <WithSheet
      sheet={
        sheet === 'record' && (
          <SideSheet title={texts.record} subtitle={<CopyId id={price.id} />} onClose={() => openSheet()}>
            <RecordTools record={price} path={`/prices/${price.id}`} entity_id={price.id} />
          </SideSheet>
        )
      }
    >
      <PriceEditor
        head={
          <>
            <PageHead
              title={name}
              status={price.end_date !== null && <Chip>{texts.ended}</Chip>}
              subtitle={
                <>
                  {plan.data && (
                    <Link from={FROM} to="/env/$environment_id/plans/$plan_id">
                      <bdi>{plan.data.name}</bdi>
                    </Link>
                  )}
                  {meter.data && (
                    <>
                      {' · '}
                      {texts.meter}{' '}
                      <Link from={FROM} to="/env/$environment_id/meters/$meter_id" params={{ meter_id: meter.data.id }}>
                        <bdi>{meter.data.name}</bdi>
                      </Link>
                    </>
                  )}
                  {' · '}
                  <PriceTermsLine price={price} />
                </>
              }
              actions={
                <>
                  <Button onClick={() => openSheet('record')}>{texts.record}</Button>
                  <Button
                    isDangerous
                    blocked={price.price_unit !== null ? null : blocked}
                    onClick={() => setDialog('end')}
                  >
                    {texts.endPrice}
                  </Button>
                </>
              }
            />
            {blocked && <p className="muted">{blocked}</p>}
          </>
        }
        draft={draft}
        onDraft={setDraft}
        isStored
        error={publish.error}
        blocked={blocked}
        idle={isChanged ? null : texts.unchanged}
        note={isChanged ? texts.notInEffect : texts.unchanged}
        runningCount={runningCount}
        onPublish={() => setDialog('publish')}
        discard={
          isChanged ? (
            <Button onClick={() => setDraft(toDraft(price))}>{texts.discard}</Button>
          ) : (
            <Link from={FROM} to="/env/$environment_id/plans/$plan_id" className={buttonClass}>
              {texts.cancel}
            </Link>
          )
        }
      />
      <PriceVersions price={price} />
      {dialog === 'publish' && (
        <PublishDialog
          startsAt={draft.starts_at}
          kind={isChargeChanged(draft, price) ? 'version' : 'name'}
          runningCount={runningCount}
          onPublish={(isRolledOut) => publish.mutateAsync(isRolledOut)}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === 'end' && (
        <Confirm
          needs="price:write"
          title={texts.endTitle(name)}
          action={texts.endAction}
          isDangerous
          onClose={() => setDialog(null)}
          onConfirm={async () => {
            await api.DELETE('/prices/{id}', { params: { path: { id: price.id } } });
            await invalidate(queries, '/plans', '/prices');
            await toPlan();
          }}
        >
          <p>{texts.endWords}</p>
        </Confirm>
      )}
    </WithSheet>
  );
}

function PriceTermsLine({ price }: { price: StoredPrice }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const { billing_period, billing_period_count, invoice_cadence, currency } = price;
  const period =
    billing_period_count === 1
      ? texts.period(billing_period)
      : texts.every(String(billing_period_count), billing_period);
  return `${period}, ${invoice_cadence === 'ARREAR' ? texts.arrears : texts.advance}, ${currency.toUpperCase()}`;
}
