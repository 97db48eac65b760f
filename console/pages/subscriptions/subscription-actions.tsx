/** The deeds on a subscription. What cannot be done now is shown blocked, with its reason. */
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { MoreMenu } from '../../components/more-menu.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import type { SubscriptionSearch } from './routes.ts';
import { listCurrentLines, type SubscriptionRecord } from './subscription.ts';
import { TEXTS } from './texts.ts';

const TICK_MS = 2_000;

type SubscriptionActionsProps = {
  subscription: SubscriptionRecord;
  isScheduled: boolean;
  onSheet: (sheet: NonNullable<SubscriptionSearch['sheet']>) => void;
};

export function SubscriptionActions({ subscription, isScheduled, onSheet }: SubscriptionActionsProps): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const now_ms = useNow(TICK_MS);
  const [isActivating, setActivating] = useState(false);
  const { id, subscription_status, line_items } = subscription;
  const isRunning = subscription_status === 'active' || subscription_status === 'trialing';
  const refused = useMayNot('subscription:write');
  const stopped = refused ?? (isRunning ? null : texts.onlyRunning);
  const scheduled = stopped ?? (isScheduled ? texts.undoFirst : null);
  const hasQuantity = listCurrentLines(line_items ?? [], now_ms).some(({ price_type }) => price_type === 'FIXED');
  return (
    <>
      <MoreMenu
        actions={[
          { label: texts.record, onClick: () => onSheet('record') },
          { label: texts.cancel, blocked: scheduled, isDangerous: true, onClick: () => onSheet('cancel') },
        ]}
      />
      {subscription_status === 'draft' ? (
        <Button isPrimary blocked={refused} onClick={() => setActivating(true)}>
          {texts.activate}
        </Button>
      ) : (
        <>
          <Button blocked={stopped ?? (hasQuantity ? null : texts.noQuantity)} onClick={() => onSheet('quantity')}>
            {texts.changeQuantity}
          </Button>
          <Button isPrimary blocked={scheduled} onClick={() => onSheet('plan')}>
            {texts.changePlan}
          </Button>
        </>
      )}
      {isActivating && (
        <Confirm
          needs="subscription:write"
          title={texts.activateTitle}
          action={texts.activateNow}
          onClose={() => setActivating(false)}
          onConfirm={async () => {
            await readData(api.POST('/subscriptions/{id}/activate', { params: { path: { id } }, body: {} as never }));
            await invalidate(queries, '/subscriptions', '/invoices', '/audit-logs');
          }}
        >
          <p>{texts.activateHint}</p>
        </Confirm>
      )}
    </>
  );
}
