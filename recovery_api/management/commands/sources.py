from recovery_api.management.ends import EndCommand


class Command(EndCommand):
    help = "Sources: list, add with a connection test, show, test, edit, retire."
    word = "source"
