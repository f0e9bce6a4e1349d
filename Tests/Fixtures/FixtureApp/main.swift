// The sample app: carries out its arguments, one command each; "commands" reads more of them from standard input.
//
//     list | schedule ITEM | foreground ITEM | promote NAME | cancel NAME | container
//     delegate full|unfinished|none
//     bundle | replace FOLDER | map FILE | set NUMBER | get KEY | add PREFIX | count PREFIX
//     answers ANSWERS | answers-later ANSWERS
//     acquire | acquire-before MILLISECONDS | release
import BackgroundAssets
import FixturePlan
import Foundation

let driver = Driver()
for command in CommandLine.arguments.dropFirst() {
    if command == "commands" {
        while let line = readLine() { driver.perform(line) }
    } else {
        driver.perform(command)
    }
}
exit(0)
