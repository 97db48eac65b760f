import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function WebhooksPage(): ReactNode {
  return <PageHead title="WebhooksPage" />;
}
