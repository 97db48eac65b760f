import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function WalletsPage(): ReactNode {
  return <PageHead title="WalletsPage" />;
}
