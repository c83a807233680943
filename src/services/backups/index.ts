// Door of backups: written while everything runs, restored into an empty installation.
export { BackupError, writeBackup } from './backup.ts'
export { checkArchive, type Migrations, refuseFilledDatabase, restoreArchive } from './restore.ts'
